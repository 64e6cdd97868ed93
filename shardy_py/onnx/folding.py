"""Tensors of a model whose contents are known, and the operands that hold sizes, axes and positions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.onnx.load import tensor_types

_REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
)
OPERANDS: Mapping[str, Mapping[int, str]] = {
    "CenterCropPad": {1: "shape"},
    "ConstantOfShape": {0: "shape"},
    "CumSum": {1: "axis"},
    "Expand": {1: "shape"},
    "OneHot": {1: "depth"},
    "Pad": {1: "pads", 3: "axes"},
    "Reshape": {1: "shape"},
    "Resize": {1: "roi", 2: "scales", 3: "sizes"},
    "Slice": {1: "starts", 2: "ends", 3: "axes", 4: "steps"},
    "Split": {1: "split"},
    "Squeeze": {1: "axes"},
    "Tile": {1: "repeats"},
    "TopK": {1: "k"},
    "Trilu": {1: "k"},
    "Unsqueeze": {1: "axes"},
    "Upsample": {1: "scales"},
    **{kind: {1: "axes"} for kind in _REDUCTIONS},
}
"""Operators whose operands at some positions say what they do: the names of the attributes that these become."""
FLOATS = ("roi", "scales")
SCALARS = ("depth", "axis")
"""Operands that are scalars; all others are vectors."""
_MOST_ELEMENTS = 4096
_MOST_FLOATS = 8
_SHAPES = ("Shape", "Size")


class Contents:
    """The contents of small tensors: of initializers, constants, and of what follows from these alone.

    Args:
        model: The model, with inferred types.
        types: The types of its tensors.
    """

    def __init__(self, model: ModelProto, types: Mapping[str, Type]) -> None:
        self._known: dict[str, Any] = {}
        self._types = types
        self._opsets = list(model.opset_import)
        for tensor in model.graph.initializer:
            if _count(tensor.dims) <= _MOST_ELEMENTS:
                self._known[tensor.name] = onnx.numpy_helper.to_array(tensor)
        for node in model.graph.node:
            self._evaluate(node)

    def get(self, name: str) -> Any:
        """Return the contents of a tensor as an array; None where they are not known."""
        return self._known.get(name)

    def _evaluate(self, node: NodeProto) -> None:
        """Record the results of a node, if its operands are known."""
        if node.op_type in _SHAPES and node.domain in ("", "ai.onnx"):
            self._evaluate_shape(node)
            return
        inputs = {name: self._known.get(name) for name in node.input if name}
        is_fit = bool(inputs) or node.op_type == "Constant"
        if not is_fit or any(value is None for value in inputs.values()) or _has_graph(node):
            return
        results = [self._types.get(name) for name in node.output if name]
        if not all(map(_may_be_folded, results)):
            return
        # What the evaluator does not know, or has random contents, is computed when the model runs.
        with suppress(Exception):
            values = _evaluated(node, inputs, self._opsets)
            self._known.update((name, value) for name, value in zip(node.output, values, strict=True) if name)

    def _evaluate_shape(self, node: NodeProto) -> None:
        type_ = self._types.get(node.input[0])
        if not isinstance(type_, TensorType) or not type_.is_static:
            return
        if node.op_type == "Size":
            self._known[node.output[0]] = np.array(_count(type_.shape), np.int64)
            return
        bounds = {item.name: item.i for item in node.attribute}
        self._known[node.output[0]] = np.array(type_.shape[bounds.get("start", 0) : bounds.get("end")], np.int64)


def add_known_operands(model: ModelProto) -> bool:
    """Make operands that nodes compute initializers, if the types of results wait for them.

    ONNX infers types from the contents of initializers and constants, not from what follows from these.

    Args:
        model: The model, with inferred types.

    Returns:
        Whether there are any.
    """
    graph = model.graph
    types = tensor_types(model)
    inferable = {tensor.name for tensor in graph.initializer}
    inferable |= {node.output[0] for node in graph.node if node.op_type == "Constant"}
    waiting = {
        node.input[position]
        for node in graph.node
        if node.domain in ("", "ai.onnx") and node.op_type in OPERANDS
        for position in OPERANDS[node.op_type]
        if position < len(node.input) and node.input[position] not in inferable
        if not all(map(_is_static, map(types.get, node.output)))
    } - {"", *(info.name for info in graph.output)}
    if not waiting:
        return False
    contents = Contents(model, types)
    producers = [node for node in graph.node if len(node.output) == 1 and node.output[0] in waiting]
    known = [node for node in producers if contents.get(node.output[0]) is not None]
    for node in known:
        array = np.asarray(contents.get(node.output[0]))
        graph.initializer.append(onnx.numpy_helper.from_array(array, node.output[0]))
        graph.node.remove(node)
    return bool(known)


def _is_static(type_: Type | None) -> bool:
    return isinstance(type_, TensorType) and type_.is_static


def _evaluated(node: NodeProto, inputs: Mapping[str, Any], opsets: list[Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    if node.op_type.startswith("Random") or node.op_type in ("Bernoulli", "Multinomial", "Dropout"):
        raise ValueError("the results are random")
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    names = [name for name in node.output if name]
    outputs = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in names]
    graph = onnx.helper.make_graph([node], "node", infos, outputs)
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    values_by_name = dict(zip(names, ReferenceEvaluator(model).run(names, dict(inputs)), strict=True))
    return [values_by_name.get(name) for name in node.output]


def _may_be_folded(type_: Type | None) -> bool:
    """Return whether a tensor may hold sizes, axes or positions: few numbers, or integers that are not very many."""
    if not isinstance(type_, TensorType):
        return False
    is_float = type_.element_type.startswith(("f", "bf", "complex"))
    return _count(type_.shape) <= (_MOST_FLOATS if is_float else _MOST_ELEMENTS)


def _has_graph(node: NodeProto) -> bool:
    return any(item.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for item in node.attribute)


def _count(shape: Any) -> int:
    count = 1
    for size in shape:
        count *= _MOST_ELEMENTS + 1 if size is None else size
    return count


def folded(node: NodeProto, position: int, contents: Contents, results: list[Type]) -> Any:
    """Return the numbers of an operand that says what a node does, as a tuple or a number; None where not known.

    Args:
        node: The node.
        position: The position of the operand.
        contents: The contents of tensors.
        results: The types of the results of the node.
    """
    name = OPERANDS[node.op_type][position]
    value = contents.get(node.input[position])
    if value is not None:
        items = np.asarray(value).reshape(-1).tolist()
        return items[0] if name in SCALARS else tuple(items)
    type_ = results[0] if results else None
    is_open = node.op_type == "Reshape"
    if name == "shape" and isinstance(type_, TensorType) and type_.shape.count(None) <= is_open:
        return tuple(-1 if size is None else size for size in type_.shape)
    return None
