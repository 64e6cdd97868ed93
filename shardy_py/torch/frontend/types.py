"""Types of values from the fake tensors of PyTorch."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.types import TensorType

ELEMENT_TYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "ui64",
    "uint32": "ui32",
    "uint16": "ui16",
    "uint8": "ui8",
    "bool": "i1",
    "complex128": "complex<f64>",
    "complex64": "complex<f32>",
    "complex32": "complex<f16>",
}
"""The name of a dtype, to the element type in MLIR's notation."""
DTYPES = {element_type: name for name, element_type in ELEMENT_TYPES.items()}
"""The element type, to the name of the dtype."""


def tensor_type(value: Any, *, node: str, location: str) -> TensorType:
    """Return the type of a fake tensor.

    Args:
        value: The tensor.
        node: The node that makes it, for errors.
        location: Its place in the source.

    Raises:
        UnsupportedError: a size depends on data, the tensor is sparse or quantized, or its dtype has no element type.
    """
    dtype = str(value.dtype).removeprefix("torch.")
    element_type = ELEMENT_TYPES.get(dtype)
    if element_type is None or str(value.layout) != "torch.strided":
        message = f"the node {node} makes a {str(value.layout).removeprefix('torch.')} tensor of {dtype}"
        raise UnsupportedError(Diagnostic("unsupported-dtype", message, location, hint="use dense tensors"))
    shape = tuple(map(as_number, value.shape))
    if None in shape:
        sizes = ", ".join(map(str, value.shape))
        hint = "export without ops whose result has a size that depends on data, such as nonzero"
        raise UnsupportedError(
            Diagnostic("dynamic-shape", f"the node {node} has the dynamic shape ({sizes})", location, hint=hint)
        )
    return TensorType(shape, element_type)


def as_number(value: Any) -> Any:
    """Return a number of a program; for one that follows from a dynamic size, what it is for the example's size.

    It is None for one that depends on data.
    """
    if type(value) in (int, float, bool):
        return value
    node = getattr(value, "node", None)
    return getattr(node, "hint", None)


def is_symbolic(value: Any) -> bool:
    """Return whether a number of a program follows from a dynamic size."""
    return type(value).__name__ in ("SymInt", "SymFloat", "SymBool")
