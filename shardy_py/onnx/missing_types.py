"""Types of tensors that ONNX's own inference does not give."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import ModelProto, NodeProto

_LIKE_FIRST = (
    "GroupNormalization",
    "MeanVarianceNormalization",
    "LpNormalization",
    "RMSNormalization",
    "Swish",
    "Mish",
)
"""Operators whose result has the type of their first operand."""


def add_missing_types(model: ModelProto) -> bool:
    """Add the types of the results of some operators to a model, and return whether there are any new ones."""
    graph = model.graph
    known = {info.name: info.type for info in (*graph.value_info, *graph.input, *graph.output) if _has_shape(info)}
    for tensor in graph.initializer:
        known[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    is_new = False
    for node in graph.node:
        for name, type_ in _result_types(node, known).items():
            if name and name not in known:
                is_new = True
                known[name] = type_
                _set_type(graph, name, type_)
    return is_new


def _set_type(graph: Any, name: str, type_: Any) -> None:
    """Write the type of a tensor, where one without a shape is, or as a new one."""
    info = next((item for item in (*graph.output, *graph.value_info) if item.name == name), None)
    if info is None:
        info = graph.value_info.add(name=name)
    info.type.CopyFrom(type_)


def _has_shape(info: Any) -> bool:
    return bool(info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.HasField("shape"))


def _result_types(node: NodeProto, known: dict[str, Any]) -> dict[str, Any]:
    """Return the types of the results of a node, as far as they follow from those of its operands."""
    if node.op_type in _LIKE_FIRST and node.input[0] in known:
        return {node.output[0]: known[node.input[0]]}
    if node.op_type != "Loop":
        return {}
    (body,) = [item.g for item in node.attribute if item.name == "body"]
    carried = len(node.input) - 2
    # A tensor that a loop carries may change its shape, unless the body says that it does not.
    types = {
        name: info.type
        for name, info, start in zip(node.output, body.output[1 : carried + 1], node.input[2:], strict=False)
        if _has_shape(info) and start in known and known[start] == info.type
    }
    for name, info in zip(node.output[carried:], body.output[carried + 1 :], strict=True):
        if _has_shape(info):
            types[name] = _stacked(info.type)
    return types


def _stacked(type_: Any) -> Any:
    """Return the type of tensors that are stacked along a new first dimension, as many as a loop runs."""
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in type_.tensor_type.shape.dim]
    return onnx.helper.make_tensor_type_proto(type_.tensor_type.elem_type, [None, *dims])
