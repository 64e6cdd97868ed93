"""The op graph of a model: one op per node, arguments for inputs and initializers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from attrs import field
from onnx import ModelProto, NodeProto

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.onnx.folding import OPERANDS, Contents, folded
from shardy_py.onnx.load import inferred, tensor_types
from shardy_py.onnx.specifications import read_annotations
from shardy_py.values import define

META = ("node", "positions", "outputs", "opset")
"""Attributes of ops that are no attributes of their nodes."""
_LARGEST_END = 2**31 - 1
_PLAIN = (onnx.AttributeProto.INT, onnx.AttributeProto.INTS, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING)
_NO_SIZES = "give the symbolic sizes: --size batch=8, or sizes={'batch': 8}"


@define
class OnnxOrigin:
    """The source of an imported program.

    Attributes:
        model: The model.
        argument_names: The names of the inputs, then of the initializers that are arguments.
        values: The values of the tensors of the model, by name.
        nodes: The distinct nodes, by the attribute ``node`` of their ops.
        opsets: The versions of operators.
    """

    model: ModelProto
    argument_names: tuple[str, ...]
    values: dict[str, Value] = field(factory=dict)
    nodes: list[NodeProto] = field(factory=list)
    opsets: list[Any] = field(factory=list)


def import_model(model: ModelProto, *, frontend: Frontend) -> Program:
    """Return the op graph of a model.

    Raises:
        UnsupportedError: the type of a tensor is not known.
        ParseError: ONNX refuses the model.
    """
    program = _Importer(model).run()
    program.frontend = frontend
    return program


class _Importer:
    """The import of one model."""

    def __init__(self, model: ModelProto) -> None:
        self._model = inferred(model)
        self._types = tensor_types(self._model)
        self._contents = Contents(self._model, self._types)
        self._mesh, self._shardings = read_annotations(model)
        self._builder = Builder(mesh=self._mesh)
        self._keys: dict[bytes, int] = {}
        self._opset = next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 1)
        self._constants: dict[str, Value] = {}
        nodes = list(self._needed_nodes())
        self._nodes = nodes
        used = {name for node in nodes for name in self._operand_names(node)} | {
            item.name for item in model.graph.output
        }
        weights = [item.name for item in model.graph.initializer if item.name in used and _is_weight(item)]
        inputs = [item.name for item in model.graph.input if item.name not in {i.name for i in model.graph.initializer}]
        self._origin = OnnxOrigin(model, (*inputs, *weights), opsets=list(model.opset_import))

    def run(self) -> Program:
        origin, builder = self._origin, self._builder
        names = origin.argument_names
        with builder.function("main", [self._type(name) for name in names]) as arguments:
            origin.values.update(zip(names, arguments, strict=True))
            for node in self._nodes:
                self._add(node)
            builder.return_(*[self._value(item.name) for item in self._model.graph.output])
            for name, sharding in self._shardings.items():
                if name in origin.values:
                    builder.shard(origin.values[name], sharding)
        builder.program.origin = origin
        return builder.build()

    def _needed_nodes(self) -> Iterator[NodeProto]:
        """Yield the nodes that the outputs need, when sizes and axes are attributes."""
        needed = {item.name for item in self._model.graph.output}
        kept = []
        for node in reversed(self._model.graph.node):
            if needed.isdisjoint(node.output) or all(
                self._contents.get(name) is not None for name in node.output if name
            ):
                continue
            kept.append(node)
            needed.update(self._operand_names(node))
        return reversed(kept)

    def _operand_names(self, node: NodeProto) -> list[str]:
        """Return the names of the tensors that are operands of the op of a node."""
        folds = self._folds(node)
        names = [name for position, name in enumerate(node.input) if name and position not in folds]
        return [*names, *_captured(node)]

    def _folds(self, node: NodeProto) -> dict[int, Any]:
        """Return what operands of a node hold that are attributes of its op, by position."""
        if node.domain not in ("", "ai.onnx") or node.op_type not in OPERANDS:
            return {}
        results = [self._types[name] for name in node.output if name in self._types]
        found = {
            position: folded(node, position, self._contents, results)
            for position in OPERANDS[node.op_type]
            if position < len(node.input) and node.input[position]
        }
        return {position: value for position, value in found.items() if value is not None}

    def _type(self, name: str) -> Type:
        type_ = self._types.get(name)
        if type_ is None:
            message = f"ONNX cannot tell the shape of the tensor {name}"
            raise UnsupportedError(Diagnostic("no-shape", message, hint=_NO_SIZES))
        return type_

    def _value(self, name: str) -> Value:
        """Return the value of a tensor; one of known contents that no node makes is a constant."""
        value = self._origin.values.get(name) or self._constants.get(name)
        if value is None:
            array = self._contents.get(name)
            if array is None:
                raise UnsupportedError(Diagnostic("no-shape", f"nothing makes the tensor {name}"))
            tensor = onnx.numpy_helper.from_array(array, name)
            node = onnx.helper.make_node("Constant", [], [name], value=tensor)
            value = self._emit("onnx.Constant", node, [], [self._type(name)], (), {})[0]
            self._constants[name] = value
        return value

    def _add(self, node: NodeProto) -> None:
        folds = self._folds(node)
        positions = tuple(position for position, name in enumerate(node.input) if name and position not in folds)
        operands = [self._value(node.input[position]) for position in positions]
        operands += [self._value(name) for name in _captured(node)]
        outputs = [name for name in node.output if name]
        types = [self._type(name) for name in outputs]
        attributes = _plain_attributes(node)
        attributes |= {OPERANDS[node.op_type][position]: value for position, value in folds.items()}
        _normalize(node, attributes, operands, types)
        with self._builder.at(node.name or f"{node.op_type} {outputs[0]}"):
            if node.op_type in _WITH_BIAS and node.domain in ("", "ai.onnx") and len(node.input) > 2 and node.input[2]:
                results = self._add_with_bias(node, operands, types, attributes)
            else:
                results = self._emit(_op_name(node), node, operands, types, positions, attributes)
        self._origin.values.update(zip(outputs, results, strict=True))

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
            bias = self._builder.op("onnx.Reshape", [bias], [TensorType(shape, product.type.element_type)], shape=shape)  # type: ignore[union-attr]
        return [self._builder.op("onnx.Add", [product, bias], types)]

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
        meta = {"node": self._number(node), "positions": positions, "outputs": outputs, "opset": self._opset}
        return list(self._builder.emit(name, operands, types, {**attributes, **meta}).results)

    def _number(self, node: NodeProto) -> int:
        """Return the number of a node among the distinct ones: those that differ in more than names."""
        bare = NodeProto()
        bare.CopyFrom(node)
        for part in ("input", "output", "name", "doc_string", "metadata_props", "device_configurations"):
            bare.ClearField(part)
        key = bare.SerializeToString(deterministic=True) + bytes(str(_captured(node)), "utf-8")
        if key not in self._keys:
            self._keys[key] = len(self._origin.nodes)
            self._origin.nodes.append(bare)
        return self._keys[key]


_WITH_BIAS = ("Gemm", "Conv", "ConvTranspose")


def _op_name(node: NodeProto) -> str:
    space = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
    return f"onnx.{space}{node.op_type}"


def _is_weight(tensor: Any) -> bool:
    """Return whether an initializer is an argument of the op graph; scalars are constants."""
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count > 1


def _plain_attributes(node: NodeProto) -> dict[str, Any]:
    """Return the attributes of a node that are numbers, lists of integers or texts."""
    found: dict[str, Any] = {}
    for item in node.attribute:
        if item.type in _PLAIN:
            value = onnx.helper.get_attribute_value(item)
            value = value.decode(errors="replace") if isinstance(value, bytes) else value
            found[item.name] = tuple(value) if isinstance(value, list) else value
    return found


def _captured(node: NodeProto) -> list[str]:
    """Return the names that the graphs of a node take from around it, in order."""
    names: dict[str, None] = {}
    for item in node.attribute:
        for graph in [item.g] if item.type == onnx.AttributeProto.GRAPH else item.graphs:
            own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                names |= dict.fromkeys(name for name in (*inner.input, *_captured(inner)) if name and name not in own)
                own.update(inner.output)
            names |= dict.fromkeys(info.name for info in graph.output if info.name not in own)
    return list(names)


def _normalize(node: NodeProto, attributes: dict[str, Any], operands: Sequence[Value], types: Sequence[Type]) -> None:
    """Write what a node leaves to defaults, so that rules need not know it."""
    kind = node.op_type
    if kind == "Slice" and attributes.get("starts") is not None and attributes.get("ends") is not None:
        _normalize_slice(attributes, operands[0])
    elif kind == "Pad" and attributes.get("pads") is not None and attributes.get("axes"):
        _normalize_pad(attributes, operands[0])
    elif kind in ("Conv", "ConvInteger", "QLinearConv", "ConvTranspose") and "kernel_shape" not in attributes:
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
