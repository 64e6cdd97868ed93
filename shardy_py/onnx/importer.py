"""The op graph of a model: one op per node, arguments for inputs and initializers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from attrs import field
from onnx import ModelProto, NodeProto

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.onnx.control_flow import import_control_flow
from shardy_py.onnx.folding import OPERANDS
from shardy_py.onnx.load import typed
from shardy_py.onnx.local_functions import inline_functions
from shardy_py.onnx.node_graphs import BODY_NAMES, captured, node_name
from shardy_py.onnx.scope import STANDARD, GraphScope, inferred
from shardy_py.onnx.specifications import read_annotations
from shardy_py.support.identity import identity
from shardy_py.values import define

META = ("node", "positions", "outputs", "opset")
"""Attributes of ops that are not attributes of their nodes."""
_LARGEST_END = 2**31 - 1
_PLAIN = (onnx.AttributeProto.INT, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING)


@define
class OnnxOrigin:
    """The source of an imported program.

    Attributes:
        model: The model.
        argument_names: The names of the inputs, then of the initializers that are arguments.
        values: The values of the tensors of the model, by name.
        bodies: The same of the graphs in nodes: by the outputs of the nodes around, and the names of their attributes.
        nodes: The distinct nodes, by the attribute ``node`` of their ops.
        opsets: The versions of operators.
    """

    model: ModelProto
    argument_names: tuple[str, ...]
    values: dict[str, Value] = field(factory=dict)
    bodies: dict[tuple[str, ...], dict[str, Value]] = field(factory=dict)
    nodes: list[NodeProto] = field(factory=list)
    opsets: list[Any] = field(factory=list)


def import_model(model: ModelProto, *, frontend: Frontend) -> Program:
    """Return the op graph of a model, with the bodies of its own functions in the places of their nodes.

    Raises:
        UnsupportedError: the type of a tensor is not known.
        ParseError: ONNX refuses the model.
    """
    program = _Importer(inline_functions(model)).run()
    program.frontend = frontend
    return program


class _Importer:
    """The import of one model."""

    def __init__(self, model: ModelProto) -> None:
        self.scope = GraphScope(inferred(model))
        self._scopes = [self.scope]
        self._paths: dict[int, tuple[str, ...]] = {identity(self.scope): ()}
        self._mesh, self._shardings = read_annotations(model)
        self.builder = Builder(mesh=self._mesh)
        self._keys: dict[bytes, int] = {}
        scope, tensors = self.scope, model.graph.initializer
        used = {name for node in scope.nodes for name in scope.operand_names(node)}
        used.update(info.name for info in model.graph.output)
        weights = [item.name for item in tensors if item.name in used and _is_weight(item)]
        inputs = [info.name for info in model.graph.input if info.name not in {item.name for item in tensors}]
        opsets = list(model.opset_import)
        self._origin = OnnxOrigin(model, (*inputs, *weights), values=scope.values, opsets=opsets)

    def run(self) -> Program:
        names, builder, values = self._origin.argument_names, self.builder, self.scope.values
        with builder.function("main", [self.scope.type_of(name) for name in names]) as arguments:
            values.update(zip(names, arguments, strict=True))
            builder.return_(*self.add_nodes())
            for name, sharding in self._shardings.items():
                if name in values:
                    builder.shard(values[name], sharding)
        builder.program.origin = self._origin
        return builder.build()

    @contextmanager
    def inside(self, scope: GraphScope, arguments: Sequence[Value]) -> Iterator[None]:
        """Make the scope of a graph current, with the values of its inputs."""
        scope.values.update(zip(scope.arguments, arguments, strict=True))
        self._scopes.append(scope)
        self.scope = scope
        try:
            yield
        finally:
            self._scopes.pop()
            self.scope = self._scopes[-1]

    def add_nodes(self) -> list[Value]:
        """Add the nodes of the current scope, and return the values of its outputs."""
        for node in self.scope.nodes:
            self._add(node)
        return [self.value(info.name) for info in self.scope.graph.output]

    def value(self, name: str) -> Value:
        """Return the value of a tensor; one of known contents that no node makes is a constant."""
        for scope in reversed(self._scopes):
            value = scope.values.get(name) or scope.constants.get(name)
            if value is not None:
                return value
        array = self.scope.constant(name)
        if array is None:
            raise UnsupportedError(Diagnostic("no-shape", f"nothing makes the tensor {name}"))
        value = self.constant(array)
        self.scope.constants[name] = value
        return value

    def constant(self, array: Any) -> Value:
        """Return a constant."""
        tensor = onnx.numpy_helper.from_array(np.asarray(array))
        node = onnx.helper.make_node("Constant", [], ["constant"], value=tensor)
        return self._emit("onnx.Constant", node, [], [typed(tensor)], (), {})[0]

    def _add(self, node: NodeProto) -> None:
        scope = self.scope
        outputs = [name for name in node.output if name]
        with self.builder.at(node.name or f"{node.op_type} {outputs[0]}"):
            bodies = scope.bodies(node)
            results = self._add_plain(node, outputs) if bodies is None else self._add_with_bodies(node, bodies)
        scope.values.update(zip(outputs, results, strict=True))

    def _add_with_bodies(self, node: NodeProto, bodies: list[GraphScope]) -> list[Value]:
        for name, body in zip(BODY_NAMES[node.op_type], bodies, strict=True):
            self._paths[identity(body)] = path = (*self._paths[identity(self.scope)], node_name(node), name)
            self._origin.bodies[path] = body.values
        return import_control_flow(self, node, bodies)

    def _add_plain(self, node: NodeProto, outputs: list[str]) -> list[Value]:
        """Add the op of a node; graphs that it has are part of its attributes."""
        folds = self.scope.folds(node)
        positions = tuple(position for position, name in enumerate(node.input) if name and position not in folds)
        operands = [self.value(node.input[position]) for position in positions]
        operands += [self.value(name) for name in captured(node)]
        types = [self.scope.type_of(name) for name in outputs]
        attributes = _plain_attributes(node)
        attributes |= {OPERANDS[node.op_type][position]: value for position, value in folds.items()}
        _normalize(node, attributes, operands, types)
        if node.op_type in _WITH_BIAS and node.domain in STANDARD and len(node.input) > 2 and node.input[2]:
            return self._add_with_bias(node, operands, types, attributes)
        return self._emit(_op_name(node), node, operands, types, positions, attributes)

    def _add_with_bias(
        self, node: NodeProto, operands: list[Value], types: list[Type], attributes: dict[str, Any]
    ) -> list[Value]:
        """Add the product of a node and the addition of its bias as two ops, so that partial sums get it once."""
        *factors, bias = operands
        if node.op_type == "Gemm" and attributes.get("beta", 1.0) != 1.0:
            return self._emit("onnx.Gemm", node, operands, types, (0, 1, 2), attributes)
        (product,) = self._emit(_op_name(node), node, factors, types, (0, 1), attributes)
        if node.op_type != "Gemm":
            shape = (bias.shape[0], *[1] * (len(types[0].shape) - 2))  # type: ignore[union-attr]
            bias = self.builder.op("onnx.Reshape", [bias], [TensorType(shape, product.type.element_type)], shape=shape)  # type: ignore[union-attr]
        return [self.builder.op("onnx.Add", [product, bias], types)]

    def _emit(
        self,
        name: str,
        node: NodeProto,
        operands: Sequence[Value],
        types: Sequence[Type],
        positions: tuple[int, ...],
        attributes: dict[str, Any],
    ) -> list[Value]:
        outputs = tuple(number for number, output in enumerate(node.output) if output)
        meta = {"node": self._number(node), "positions": positions, "outputs": outputs, "opset": self.scope.opset}
        return list(self.builder.emit(name, operands, types, {**attributes, **meta}).results)

    def _number(self, node: NodeProto) -> int:
        """Return the number of a node among the distinct ones: those that differ in more than names."""
        bare = NodeProto()
        bare.CopyFrom(node)
        for part in ("input", "output", "name", "doc_string", "metadata_props", "device_configurations"):
            bare.ClearField(part)
        key = bare.SerializeToString(deterministic=True) + bytes(str(captured(node)), "utf-8")
        if key not in self._keys:
            self._keys[key] = len(self._origin.nodes)
            self._origin.nodes.append(bare)
        return self._keys[key]


_CONVOLUTIONS = ("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "FusedConv", "NhwcConv", "NhwcFusedConv")
_WITH_BIAS = ("Gemm", "Conv", "ConvTranspose")


def _op_name(node: NodeProto) -> str:
    space = "" if node.domain in STANDARD else f"{node.domain}."
    return f"onnx.{space}{node.op_type}"


def _is_weight(tensor: Any) -> bool:
    """Return whether an initializer is an argument of the op graph; scalars are constants."""
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count > 1


def _plain_attributes(node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node that are numbers, lists of integers or texts."""
    attributes: dict[str, Any] = {}
    for item in node.attribute:
        if item.type in _PLAIN:
            value = onnx.helper.get_attribute_value(item)
            value = value.decode(errors="replace") if isinstance(value, bytes) else value
            attributes[item.name] = tuple(value) if isinstance(value, list) else value
    return attributes


def _normalize(node: NodeProto, attributes: dict[str, Any], operands: Sequence[Value], types: Sequence[Type]) -> None:
    """Write what a node leaves to defaults, so that rules need not know it."""
    kind = node.op_type
    if kind == "Slice" and attributes.get("starts") is not None and attributes.get("ends") is not None:
        _normalize_slice(attributes, operands[0])
    elif kind == "Pad" and attributes.get("pads") is not None and attributes.get("axes"):
        _normalize_pad(attributes, operands[0])
    elif kind in _CONVOLUTIONS and "kernel_shape" not in attributes:
        weight = operands[3 if kind == "QLinearConv" else 1].type
        if isinstance(weight, TensorType):
            attributes["kernel_shape"] = tuple(weight.shape[2:])


def _normalize_slice(attributes: dict[str, Any], operand: Value) -> None:
    """Leave out the axes of a slice that are not cut."""
    starts, ends = attributes["starts"], attributes["ends"]
    shape = getattr(operand.type, "shape", ())
    axes = attributes.get("axes") or tuple(range(len(starts)))
    steps = attributes.get("steps") or (1,) * len(starts)
    cut = [
        (start, end, axis % len(shape), step)
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True)
        if not (start == 0 and step == 1 and (end >= _LARGEST_END or (shape[axis] is not None and end >= shape[axis])))
    ]
    for name, column in zip(
        ("starts", "ends", "axes", "steps"), zip(*cut, strict=True) if cut else [()] * 4, strict=True
    ):
        attributes[name] = tuple(column)


def _normalize_pad(attributes: dict[str, Any], operand: Value) -> None:
    """Write the widths of a padding for all axes."""
    rank = len(getattr(operand.type, "shape", ()))
    axes, pads = attributes.pop("axes"), attributes["pads"]
    full = [0] * (2 * rank)
    for number, axis in enumerate(axes):
        full[axis % rank] = pads[number]
        full[rank + axis % rank] = pads[len(axes) + number]
    attributes["pads"] = tuple(full)
