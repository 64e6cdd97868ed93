"""Models of ONNX from files, with the types of all tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.frontends.sources import source_bytes
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.graph.types import TensorType, Type

ELEMENT_TYPES = {
    "FLOAT": "f32",
    "DOUBLE": "f64",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "FLOAT8E4M3FN": "f8E4M3FN",
    "FLOAT8E4M3FNUZ": "f8E4M3FNUZ",
    "FLOAT8E5M2": "f8E5M2",
    "FLOAT8E5M2FNUZ": "f8E5M2FNUZ",
    "INT64": "i64",
    "INT32": "i32",
    "INT16": "i16",
    "INT8": "i8",
    "INT4": "i4",
    "UINT64": "ui64",
    "UINT32": "ui32",
    "UINT16": "ui16",
    "UINT8": "ui8",
    "UINT4": "ui4",
    "BOOL": "i1",
    "COMPLEX64": "complex<f32>",
    "COMPLEX128": "complex<f64>",
}
"""The name of a type of elements, to that in MLIR's notation."""
DATA_TYPES = {text: onnx.TensorProto.DataType.Value(name) for name, text in ELEMENT_TYPES.items()}
"""The type of elements in MLIR's notation, to ONNX's number of it."""
_LARGE = 64


def load(source: Any) -> ModelProto:
    """Return the model of a file, or a model as it is.

    Raises:
        ParseError: the file cannot be read, or is not a model.
    """
    if isinstance(source, ModelProto):
        return source
    data, name = source_bytes(source, str(source))
    model = parse(data, name)
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer):
        onnx.load_external_data_for_model(model, str(Path(source).parent))
    return model


def parse(data: bytes, name: str) -> ModelProto:
    """Return the model in bytes.

    Raises:
        ParseError: they are not a model.
    """
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:
        message = f"the file is not a model of ONNX: {describe_error(error)}"
        raise ParseError(Diagnostic("malformed-model", message, name)) from None
    if not model.graph.node and not model.graph.output:
        raise ParseError(Diagnostic("malformed-model", "the model has no graph", name))
    return model


def tensor_types(model: ModelProto) -> dict[str, Type]:
    """Return the types of the tensors of a model with inferred types, by name."""
    graph = model.graph
    types: dict[str, Type] = {}
    for info in (*graph.value_info, *graph.output, *graph.input):
        if info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.HasField("shape"):
            dims = info.type.tensor_type.shape.dim
            sizes = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)
            types[info.name] = _tensor_type(sizes, info.type.tensor_type.elem_type, info.name)
    for tensor in graph.initializer:
        types[tensor.name] = typed(tensor)
    return types


def typed(tensor: Any) -> TensorType:
    """Return the type of an initializer or constant."""
    return _tensor_type(tuple(tensor.dims), tensor.data_type, tensor.name)


def type_proto(type_: TensorType) -> Any:
    """Return a type in ONNX's form."""
    return onnx.helper.make_tensor_type_proto(DATA_TYPES[type_.element_type], list(type_.shape))


def _tensor_type(sizes: tuple[int | None, ...], number: int, name: str) -> TensorType:
    word = onnx.TensorProto.DataType.Name(number)
    element_type = ELEMENT_TYPES.get(word)
    if element_type is None:
        message = f"the tensor {name} has elements of the type {word}"
        raise UnsupportedError(Diagnostic("unsupported-dtype", message, hint="use numbers"))
    return TensorType(sizes, element_type)


def initializer_arrays(model: ModelProto) -> dict[str, Any]:
    """Return the initializers of a model as arrays, by name."""
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def model_text(model: ModelProto) -> str:
    """Return a model in ONNX's text form, with the contents of large tensors left out."""
    short = ModelProto()
    short.CopyFrom(model)
    for tensor in short.graph.initializer:
        size = 1
        for dim in tensor.dims:
            size *= dim
        if size > _LARGE:
            tensor.ClearField("raw_data")
            for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                tensor.ClearField(field)
    return f"{onnx.printer.to_text(short)}\n"
