"""Types of tensors that ONNX's own inference does not give."""

from __future__ import annotations

from collections.abc import Callable
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


def add_missing_types(model: ModelProto, loop_types: Callable[[NodeProto], dict[str, Any]]) -> bool:
    """Add the types of the results of some operators to a model, and return whether there are any new ones.

    Args:
        model: The model.
        loop_types: Returns the types of the results of a loop that are known.
    """
    graph = model.graph
    known = {info.name: info.type for info in (*graph.value_info, *graph.input, *graph.output) if _has_shape(info)}
    for tensor in graph.initializer:
        known[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    is_new = False
    for node in graph.node:
        if node.op_type not in (*_LIKE_FIRST, "Loop"):
            continue
        types = loop_types(node) if node.op_type == "Loop" else _like_first(node, known)
        for name, type_ in types.items():
            if name and _known_sizes(type_) > _known_sizes(known.get(name)):
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


def _known_sizes(type_: Any) -> int:
    """Return the number of dimensions whose size a type has; -1 for no type."""
    return -1 if type_ is None else sum(dim.HasField("dim_value") for dim in type_.tensor_type.shape.dim)


def _has_shape(info: Any) -> bool:
    return bool(info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.HasField("shape"))


def _like_first(node: NodeProto, known: dict[str, Any]) -> dict[str, Any]:
    """Return the type of the first operand of a node for its result."""
    return {node.output[0]: known[node.input[0]]} if node.input[0] in known else {}
