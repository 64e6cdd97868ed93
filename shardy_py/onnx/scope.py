"""Types and contents of the tensors of a graph, the nodes that its outputs need, and the graphs in these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.onnx.folding import OPERANDS, Contents, add_known_operands, folded
from shardy_py.onnx.load import tensor_types, type_proto
from shardy_py.onnx.missing_types import add_missing_types
from shardy_py.onnx.node_graphs import BODY_NAMES, captured, node_graph, outer_names
from shardy_py.onnx.runtime_types import add_runtime_types
from shardy_py.support.identity import identity
from shardy_py.values import frozen

NUMBER, TRUTH = TensorType((), "i64"), TensorType((), "i1")
"""The types of the number of an iteration, and of the condition of a loop."""
_SCAN_VERSION = 9
"""The first version of ``Scan`` without a dimension of batches."""
STANDARD = ("", "ai.onnx")
"""The names of the domain of ONNX's operators."""
_NO_SIZES = "give the symbolic sizes: --size batch=8, or sizes={'batch': 8}"
_NO_TYPE = "onnxruntime does not know it either: add it to the value_info of the graph with its type"


class GraphScope:
    """The tensors of the main graph, or of a graph in a node.

    Args:
        model: A model whose graph it is, with inferred types.
        argument_count: The number of its inputs; those behind them are tensors around it.
        outside: The names of the tensors around the graph that it reads.
    """

    def __init__(self, model: ModelProto, argument_count: int | None = None, outside: Sequence[str] = ()) -> None:
        self.graph = model.graph
        self.arguments = [info.name for info in model.graph.input][:argument_count]
        self._outside = frozenset(outside)
        self.opsets = list(model.opset_import)
        self.opset = next((item.version for item in self.opsets if item.domain in STANDARD), 1)
        self.types: Mapping[str, Type] = tensor_types(model)
        self.contents = Contents(model, self.types)
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Value] = {}
        self._bodies: dict[int, list[GraphScope] | None] = {}
        self._loop_bodies: dict[int, GraphScope | None] = {}
        self._all_nodes = list(model.graph.node)
        self.nodes = self._needed_nodes()

    def type_of(self, name: str) -> Type:
        """Return the type of a tensor.

        Raises:
            UnsupportedError: it is not known.
        """
        type_ = self.types.get(name)
        if type_ is None:
            raise self._unknown_shape(name)
        return type_

    def _unknown_shape(self, name: str) -> UnsupportedError:
        message = f"ONNX cannot tell the shape of the tensor {name}"
        producer = next((node for node in self._all_nodes if name in node.output), None)
        if producer is None or producer.domain in STANDARD:
            return UnsupportedError(Diagnostic("no-shape", message, hint=_NO_SIZES))
        message += f", a result of {producer.domain}.{producer.op_type}"
        return UnsupportedError(Diagnostic("no-shape", message, hint=_NO_TYPE))

    def constant(self, name: str) -> Any:
        """Return the contents of a tensor as an array; None where they are not known."""
        known = self.contents.get(name)
        tensors = (tensor for tensor in self.graph.initializer if tensor.name == name)
        return known if known is not None else next(map(onnx.numpy_helper.to_array, tensors), None)

    def folds(self, node: NodeProto) -> dict[int, Any]:
        """Return what operands of a node hold that are attributes of its op, by position."""
        if node.domain not in STANDARD or node.op_type not in OPERANDS:
            return {}
        results = [self.types[name] for name in node.output if name in self.types]
        contents = {
            position: folded(node, position, self.contents, results)
            for position in OPERANDS[node.op_type]
            if position < len(node.input) and node.input[position]
        }
        return {position: value for position, value in contents.items() if value is not None}

    def operand_names(self, node: NodeProto) -> list[str]:
        """Return the names of the tensors that the op of a node reads, or that the ops in its regions read."""
        folds = self.folds(node)
        names = [name for position, name in enumerate(node.input) if name and position not in folds]
        bodies = self.bodies(node)
        return [*names, *(captured(node) if bodies is None else (name for body in bodies for name in body.captured()))]

    def captured(self) -> list[str]:
        """Return the names of the tensors around this graph that the ops of its nodes read, or that it returns."""
        names = [name for node in self.nodes for name in self.operand_names(node)]
        names += [info.name for info in self.graph.output]
        return [name for name in dict.fromkeys(names) if name in self._outside]

    def bodies(self, node: NodeProto) -> list[GraphScope] | None:
        """Return the scopes of the graphs of a node; None where it has none, or their types are not known."""
        key = identity(node)
        if key not in self._bodies:
            self._bodies[key] = _body_scopes(self, node)
        return self._bodies[key]

    def loop_body(self, node: NodeProto) -> GraphScope | None:
        """Return the scope of the body of a ``Loop``; None where it changes the types of what it carries."""
        key = identity(node)
        if key not in self._loop_bodies:
            types = [self.types.get(name) for name in node.input[2:]]
            is_typed = all(isinstance(type_, TensorType) for type_ in types)
            body = self.inner(node_graph(node, "body"), [NUMBER, TRUTH, *types]) if is_typed else None  # type: ignore[list-item]
            self._loop_bodies[key] = body if body is not None and loop_outputs(body, node)[0] == types else None
        return self._loop_bodies[key]

    def inner(self, graph: GraphProto, arguments: Sequence[TensorType]) -> GraphScope | None:
        """Return the scope of a graph in a node of this one; None where ONNX cannot tell all types.

        Args:
            graph: The graph.
            arguments: The types of its inputs.
        """
        model = onnx.helper.make_model(GraphProto(name="body"), opset_imports=self.opsets)
        model.graph.CopyFrom(graph)
        del model.graph.value_info[:]
        for info, argument in zip(model.graph.input, arguments, strict=True):
            info.type.CopyFrom(type_proto(argument))
        for info in model.graph.output:
            info.type.Clear()
        outside = outer_names(graph)
        for name in outside:
            if (array := self.contents.get(name)) is not None:
                model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
            elif isinstance(type_ := self.types.get(name), TensorType):
                model.graph.input.append(onnx.helper.make_value_info(name, type_proto(type_)))
        scope = GraphScope(inferred(model), len(arguments), outside)
        needed = {name for node in scope.nodes for name in (*node.output, *scope.operand_names(node)) if name}
        needed |= {info.name for info in graph.output}
        return scope if all(isinstance(scope.types.get(name), TensorType) for name in needed) else None

    def _needed_nodes(self) -> list[NodeProto]:
        """Return the nodes that the outputs need, when sizes and axes are attributes."""
        needed = {item.name for item in self.graph.output}
        nodes = []
        for node in reversed(self._all_nodes):
            is_known = all(self.contents.get(name) is not None for name in node.output if name)
            if needed.isdisjoint(node.output) or is_known:
                continue
            nodes.append(node)
            needed.update(self.operand_names(node))
        return nodes[::-1]


def inferred(model: ModelProto) -> ModelProto:
    """Return a model with the types of all tensors that ONNX can tell.

    Raises:
        ParseError: a node does not fit its inputs.
    """
    try:
        # Strict inference gives up at operators that it cannot infer, which are not mistakes of the model.
        model = onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True)
    except Exception as error:
        hint = "onnx.checker.check_model(model, full_check=True) says more"
        message = f"ONNX refuses the model: {describe_error(error)}"
        raise ParseError(Diagnostic("malformed-model", message, hint=hint)) from None
    while add_known_operands(model) or add_missing_types(model, _loop_types(model)) or add_runtime_types(model):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return model


def _loop_types(model: ModelProto) -> Callable[[NodeProto], dict[str, Any]]:
    """Return the function that gives the types of the results of a loop of a model, as far as they are known."""
    scopes: list[GraphScope] = []

    def types_of(node: NodeProto) -> dict[str, Any]:
        if not scopes:
            scopes.append(GraphScope(model))
        (scope,) = scopes
        body = scope.loop_body(node)
        if body is None:
            return {}
        count = trip_count(node, scope.contents, body.contents)
        carried, stacked = loop_outputs(body, node)
        types = [*carried, *(TensorType((count, *type_.shape), type_.element_type) for type_ in stacked)]
        return {name: type_proto(type_) for name, type_ in zip(node.output, types, strict=False) if name}

    return types_of


def _body_scopes(scope: GraphScope, node: NodeProto) -> list[GraphScope] | None:
    """Return the scopes of the graphs of a node whose regions take part in propagation; None where they cannot."""
    if node.domain not in STANDARD or node.op_type not in _BODIES:
        return None
    return _BODIES[node.op_type](scope, node)


def _branch_scopes(scope: GraphScope, node: NodeProto) -> list[GraphScope] | None:
    branches = [scope.inner(node_graph(node, name), ()) for name in BODY_NAMES["If"]]
    first, second = branches
    if first is None or second is None or output_types(first) != output_types(second):
        return None
    return [first, second]


def _loop_scopes(scope: GraphScope, node: NodeProto) -> list[GraphScope] | None:
    body = scope.loop_body(node)
    if body is None:
        return None
    is_counted = trip_count(node, scope.contents, body.contents) is not None
    return [body] if is_counted or not loop_outputs(body, node)[1] else None


def loop_outputs(body: GraphScope, node: NodeProto) -> tuple[list[TensorType], list[TensorType]]:
    """Return the types of the next values and of the slices of stacked outputs that a body of a ``Loop`` returns."""
    carried = max(len(node.input) - 2, 0)
    types = output_types(body)[1:]
    return types[:carried], types[carried:]


def trip_count(node: NodeProto, contents: Contents, inner: Contents) -> int | None:
    """Return how often a ``Loop`` runs; None where that is not known.

    Args:
        node: The node.
        contents: What is known around it.
        inner: What is known in its body.
    """
    count = contents.get(node.input[0]) if node.input[0] else None
    condition = contents.get(node.input[1]) if len(node.input) > 1 and node.input[1] else np.array(True)
    if count is None or condition is None:
        return None
    if not condition.all():
        return 0
    body = node_graph(node, "body")
    source = body.output[0].name
    for other in reversed(body.node):
        if source in other.output and other.op_type == "Identity":
            source = other.input[0]
    known = inner.get(source)
    goes_on = source == body.input[1].name or (known is not None and bool(known.all()))
    return max(0, int(count.reshape(()))) if goes_on else None


def _scan_scopes(scope: GraphScope, node: NodeProto) -> list[GraphScope] | None:
    if scope.opset < _SCAN_VERSION:
        return None
    graph, scan = node_graph(node, "body"), Scan.of(node)
    types = [scope.types.get(name) for name in node.input]
    if not all(isinstance(type_, TensorType) for type_ in types):
        return None
    count = scan.states(node)
    inputs = [without(type_, axis) for type_, axis in zip(types[count:], scan.input_axes, strict=True)]  # type: ignore[arg-type]
    body = scope.inner(graph, [*types[:count], *inputs])  # type: ignore[list-item]
    if body is None or output_types(body)[:count] != types[:count]:
        return None
    return [body] if scan.length(types[count:]) is not None else None  # type: ignore[arg-type]


@frozen
class Scan:
    """The attributes of a ``Scan``: the axes and directions of its inputs and outputs."""

    input_axes: tuple[int, ...]
    input_directions: tuple[int, ...]
    output_axes: tuple[int, ...]
    output_directions: tuple[int, ...]

    @classmethod
    def of(cls, node: NodeProto) -> Scan:
        """Return the attributes of a node."""
        lists = {item.name: tuple(item.ints) for item in node.attribute if item.ints}
        inputs = next(item.i for item in node.attribute if item.name == "num_scan_inputs")
        outputs = len(node_graph(node, "body").output) - (len(node.input) - inputs)
        zeros = {"input": (0,) * inputs, "output": (0,) * outputs}
        names = [(side, kind) for side in ("input", "output") for kind in ("axes", "directions")]
        return cls(*(lists.get(f"scan_{side}_{kind}", zeros[side]) for side, kind in names))

    def states(self, node: NodeProto) -> int:
        """Return the number of carried values."""
        return len(node.input) - len(self.input_axes)

    def length(self, types: Sequence[TensorType]) -> int | None:
        """Return the number of iterations."""
        return next((type_.shape[axis] for type_, axis in zip(types, self.input_axes, strict=True)), None)


def without(type_: TensorType, axis: int) -> TensorType:
    """Return the type of a slice along an axis."""
    axis %= type_.rank
    return TensorType((*type_.shape[:axis], *type_.shape[axis + 1 :]), type_.element_type)


def output_types(scope: GraphScope) -> list[TensorType]:
    """Return the types of the outputs of the graph of a scope."""
    types = [scope.type_of(info.name) for info in scope.graph.output]
    return [type_ for type_ in types if isinstance(type_, TensorType)]


_BODIES = {"If": _branch_scopes, "Loop": _loop_scopes, "Scan": _scan_scopes}
