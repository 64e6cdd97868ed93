"""Types of tensors that onnxruntime can tell and ONNX cannot.

The quantizer and the optimizer of onnxruntime write nodes of domains of its own, such as ``com.microsoft``, and
operators of ONNX before the version that defines them. ONNX infers no type behind these.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import ModelProto

_MOST_BYTES = 4096
"""Larger initializers become inputs of the model that onnxruntime gets: no type depends on their contents."""
_NEWEST_FORMAT = 10
"""The version of the format that each supported onnxruntime reads."""
_SHAPE = ".shape?"
"""The end of the name of the shape of a tensor."""
_UNNAMED = "unk__"
"""The start of the symbols that onnxruntime makes up."""


def add_runtime_types(model: ModelProto) -> bool:
    """Add the types of tensors that ONNX cannot infer to a model, and return whether there are new ones.

    Without onnxruntime, and where it refuses the model, there are none.

    Args:
        model: The model, with the types that ONNX infers.
    """
    graph = model.graph
    infos = {info.name: info for info in (*graph.value_info, *graph.output)}
    unknown = [
        name
        for node in graph.node
        for name in node.output
        if name and not (name in infos and infos[name].type.tensor_type.HasField("shape"))
    ]
    types = _runtime_types(model, unknown) if unknown else {}
    for name, type_ in types.items():
        (infos.get(name) or graph.value_info.add(name=name)).type.CopyFrom(type_)
    return bool(types)


def _runtime_types(model: ModelProto, names: list[str]) -> dict[str, Any]:
    """Return the types of those of some tensors whose shapes onnxruntime knows."""
    try:
        import onnxruntime
    except ImportError:
        return {}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = _question(model, names).SerializeToString()
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception:  # The classes of its errors are not public; a tensor that stays without a type is reported.
        return {}
    outputs = {item.name: item for item in session.get_outputs()}
    types = {name: _type_proto(outputs[name], outputs[name + _SHAPE].shape) for name in names}
    return {name: type_ for name, type_ in types.items() if type_ is not None}


def _question(model: ModelProto, names: list[str]) -> ModelProto:
    """Return a copy of a model with some tensors and their shapes as outputs, without large initializers."""
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(model.ir_version, _NEWEST_FORMAT)
    graph = copy.graph
    inputs = {info.name for info in graph.input}
    for number, tensor in reversed([*enumerate(graph.initializer)]):
        if tensor.ByteSize() > _MOST_BYTES:
            type_ = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            graph.input.extend([] if tensor.name in inputs else [onnx.helper.make_value_info(tensor.name, type_)])
            del graph.initializer[number]
    graph.value_info.extend(info for info in graph.output if info.name not in names)
    del graph.output[:]
    for name in names:
        graph.node.append(onnx.helper.make_node("Shape", [name], [name + _SHAPE]))
        graph.output.extend(onnx.helper.make_value_info(item, onnx.TypeProto()) for item in (name, name + _SHAPE))
    return copy


def _type_proto(item: Any, sizes_of_shape: list[Any]) -> Any:
    """Return the type of an output of a session; None where its shape is not known.

    Args:
        item: The output; one without a known shape looks like a scalar.
        sizes_of_shape: The sizes of its shape as a tensor, which has a known size where the rank is known.
    """
    word = item.type.removeprefix("tensor(").removesuffix(")").upper()
    number = dict(onnx.TensorProto.DataType.items()).get(word)
    if number is None or sizes_of_shape != [len(item.shape)]:
        return None
    sizes = [None if isinstance(size, str) and size.startswith(_UNNAMED) else size for size in item.shape]
    return onnx.helper.make_tensor_type_proto(number, sizes)
