"""The dtypes of numpy and `ml_dtypes` for the element types of tensors."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.support.element_types import xla_element_type

_ML_FLOATS = {
    "bf16": "bfloat16",
    "f4e2m1fn": "float4_e2m1fn",
    "f8e3m4": "float8_e3m4",
    "f8e4m3": "float8_e4m3",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}
_SMALL_INTEGERS = {"s1": "int1", "s2": "int2", "s4": "int4", "u1": "uint1", "u2": "uint2", "u4": "uint4"}
_NUMPY_KINDS = {"s": "int", "u": "uint", "f": "float", "c": "complex"}


def numpy_dtype(element_type: str) -> Any:
    """Return the numpy dtype of an element type in MLIR's notation.

    >>> numpy_dtype("f32").name, numpy_dtype("ui8").name, numpy_dtype("i1").name, numpy_dtype("bf16").name
    ('float32', 'uint8', 'bool', 'bfloat16')

    Raises:
        UnsupportedError: no dtype has these elements.
    """
    import ml_dtypes
    import numpy

    name = xla_element_type(element_type)
    if name is None:
        message = f"numpy has no dtype for elements of the type {element_type}"
        raise UnsupportedError(Diagnostic("unknown-dtype", message))
    if name == "pred":
        return numpy.dtype(bool)
    other = _ML_FLOATS.get(name) or _SMALL_INTEGERS.get(name)
    if other is not None:
        return numpy.dtype(getattr(ml_dtypes, other))
    return numpy.dtype(f"{_NUMPY_KINDS[name[0]]}{name[1:]}")
