"""The model of one device, of the op graph of a local program.

Collectives are nodes of the domain ``shardy.collective``, with groups of devices as attributes; so is the entry of a
table for the device. Everything else is ONNX.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType
from shardy_py.layout.numpy_arrays import numpy_dtype
from shardy_py.onnx.control_flow import BUFFER, UPDATE
from shardy_py.onnx.folding import FLOATS, OPERANDS, SCALARS
from shardy_py.onnx.importer import META
from shardy_py.onnx.load import DATA_TYPES
from shardy_py.onnx.node_graphs import BODY_NAMES, captured, node_graphs

DOMAIN = "shardy.collective"
_SPACE = "collective."
_GUARD = "the parts of a dynamic size must be equal"
"""The start of the names of nodes that onnxruntime refuses where they are not, which its message has."""
_NEUTRAL = {"add": 0, "mul": 1, "and": -1, "or": 0}


def local_model(program: Program) -> ModelProto:
    """Return the model of one device."""
    return _Writer(program).run()


class _Writer:
    """The nodes of one model."""

    def __init__(self, program: Program) -> None:
        self._program, self._origin = program, program.origin
        self._main = program.functions["main"]
        self._nodes: list[NodeProto] = []
        self._tensors: dict[tuple[str, bytes, tuple[int, ...]], str] = {}
        self._initializers: list[Any] = []
        self._names: dict[int, str] = {}
        self._count = 0

    def run(self) -> ModelProto:
        arguments = entry_arguments(self._main)
        for value, name in zip(arguments, self._origin.argument_names, strict=True):
            self._names[value.id] = name
        block = self._main.regions[0].blocks[0]
        for op in block.ops:
            if op is not block.terminator:
                self._write(op)
        assert block.terminator is not None
        outputs = self._outputs(block.terminator)
        graph = onnx.helper.make_graph(
            self._nodes,
            "local",
            [self._info(self._names[value.id], value) for value in arguments],
            outputs,
            initializer=self._initializers,
        )
        opsets = [*self._origin.opsets, onnx.helper.make_opsetid(DOMAIN, 1)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=max(self._origin.model.ir_version, 8))

    def _outputs(self, terminator: Op) -> list[Any]:
        """Return the outputs; a value that is an argument, or an output already, gets a name of its own."""
        infos = []
        for number, (value, output) in enumerate(
            zip(terminator.operands, self._origin.model.graph.output, strict=True)
        ):
            name = f"{output.name}.result{number}"
            self._node("Identity", [self._name(value)], name)
            infos.append(self._info(name, value))
        return infos

    def _info(self, name: str, value: Value) -> Any:
        type_ = value.type
        assert isinstance(type_, TensorType)
        return onnx.helper.make_tensor_value_info(name, DATA_TYPES[type_.element_type], list(type_.shape))

    def _name(self, value: Value) -> str:
        return self._names.setdefault(value.id, f"v{value.id}")

    def _write(self, op: Op) -> None:
        if op.name.startswith(_SPACE):
            _COLLECTIVES.get(op.name, _Writer._write_collective)(self, op)
            return
        if op.regions or op.name in _LOOP_OPS:
            _LOOP_OPS.get(op.name, _Writer._write_loop)(self, op)
            return
        proto = self._bare_node(op)
        self._set_inputs(proto, op)
        outputs = op.attributes.get("outputs", tuple(range(len(op.results))))
        names = [""] * (max(outputs, default=-1) + 1)
        for position, value in zip(outputs, op.results, strict=True):
            names[position] = self._name(value)
        proto.output.extend(names)
        self._nodes.append(proto)

    def _bare_node(self, op: Op) -> NodeProto:
        """Return the node of an op without inputs and outputs, with the attributes that the op has now."""
        number = op.attributes.get("node")
        proto = NodeProto()
        if number is None:
            proto.op_type = op.name.removeprefix("onnx.")
        else:
            proto.CopyFrom(self._origin.nodes[number])
        folded = OPERANDS.get(proto.op_type, {}).values()
        before = {item.name: onnx.helper.get_attribute_value(item) for item in proto.attribute}
        for name, value in op.attributes.items():
            if name in META or name in folded or "." in name or name == "kernel_shape":
                continue
            known = before.get(name)
            known = tuple(known) if isinstance(known, list) else known.decode() if isinstance(known, bytes) else known
            if known != value:
                other_attributes = [item for item in proto.attribute if item.name != name]
                del proto.attribute[:]
                proto.attribute.extend([*other_attributes, onnx.helper.make_attribute(name, _plain(value))])
        if proto.op_type == "Reshape":
            other_attributes = [item for item in proto.attribute if item.name != "allowzero"]
            del proto.attribute[:]
            proto.attribute.extend(other_attributes)
        return proto

    def _set_inputs(self, proto: NodeProto, op: Op) -> None:
        folds = OPERANDS.get(proto.op_type, {}) if op.name.count(".") == 1 else {}
        positions = op.attributes.get("positions", tuple(range(len(op.operands))))
        inputs = dict(zip(positions, map(self._name, op.operands), strict=False))
        outside = op.operands[len(positions) :]
        if outside:
            _rename_captured(proto, [self._name(value) for value in outside])
        for position, name in folds.items():
            value = op.attributes.get(name)
            is_attribute = any(item.name == name for item in proto.attribute)
            if value is not None and position not in inputs and not is_attribute:
                inputs[position] = self._constant(_operand(name, value))
        proto.input.extend(inputs.get(position, "") for position in range(max(inputs, default=-1) + 1))

    def _constant(self, array: Any) -> str:
        """Return the name of an initializer with some contents."""
        array = np.asarray(array)
        key = str(array.dtype), array.tobytes(), array.shape
        if key not in self._tensors:
            self._tensors[key] = f"constant{len(self._tensors)}"
            self._initializers.append(onnx.numpy_helper.from_array(array, self._tensors[key]))
        return self._tensors[key]

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _write_collective(self, op: Op) -> None:
        """Write a node that communicates, with its groups in one list and the size of each."""
        attributes = {name: value for name, value in op.attributes.items() if name not in META and "." not in name}
        groups = attributes.pop("groups", ())
        attributes |= {"groups": [device for group in groups for device in group]} if groups else {}
        attributes |= {"group_sizes": [len(group) for group in groups]} if groups else {}
        kind = "".join(part.capitalize() for part in op.name.removeprefix(_SPACE).split("_"))
        node = onnx.helper.make_node(
            kind, [self._name(item) for item in op.operands], [self._name(op.results[0])], domain=DOMAIN
        )
        node.attribute.extend(onnx.helper.make_attribute(name, _plain(value)) for name, value in attributes.items())
        self._nodes.append(node)

    def _write_offset(self, op: Op) -> None:
        table = op.attributes["table"]
        if len(set(table)) > 1:
            self._write_collective(op)
            return
        self._names[op.results[0].id] = self._constant(np.array(table[0], np.int64))

    def _write_scalar(self, op: Op) -> None:
        type_ = op.results[0].type
        assert isinstance(type_, TensorType)
        self._names[op.results[0].id] = self._constant(_scalar(type_.element_type, op.attributes["number"]))

    def _write_if(self, op: Op) -> None:
        branches = {
            name: self._body(region.blocks[0], (), list(_end(region.blocks[0]).operands))
            for name, region in zip(BODY_NAMES["If"], op.regions, strict=True)
        }
        self._add_node("If", op.operands, op.results, branches)

    def _write_loop(self, op: Op) -> None:
        """Write a loop; buffers of which each iteration just writes its slice are stacked outputs."""
        block = op.regions[0].blocks[0]
        values = _end(block).operands
        stacked = {number: slice_ for number in range(len(op.results)) if (slice_ := _stacked_slice(op, number))}
        carried = [number for number in range(len(op.results)) if number not in stacked]
        body = self._body(
            block,
            [*block.arguments[:2], *(block.arguments[2 + number] for number in carried)],
            [values[0], *(values[1 + number] for number in carried), *stacked.values()],
            {values[1 + number].id for number in stacked},
        )
        operands = [*op.operands[:2], *(op.operands[2 + number] for number in carried)]
        self._add_node("Loop", operands, [op.results[number] for number in (*carried, *stacked)], {"body": body})

    def _add_node(self, kind: str, operands: Sequence[Value], results: Sequence[Value], graphs: dict[str, Any]) -> None:
        inputs, outputs = ([self._name(value) for value in values] for values in (operands, results))
        self._nodes.append(onnx.helper.make_node(kind, inputs, outputs, **graphs))

    def _body(
        self, block: Block, arguments: Sequence[Value], outputs: Sequence[Value], left_out: Collection[int] = ()
    ) -> Any:
        """Return the graph of a region.

        Args:
            block: Its block.
            arguments: The values that are its inputs.
            outputs: The values that are its outputs; each gets a name of its own.
            left_out: The ids of results of ops that are not written.
        """
        nodes, self._nodes = self._nodes, []
        for op in block.ops:
            if op is not block.terminator and (not op.results or op.results[0].id not in left_out):
                self._write(op)
        infos = []
        for value in outputs:
            self._count += 1
            name = self._node("Identity", [self._name(value)], f"{self._name(value)}.output{self._count}")
            infos.append(self._info(name, value))
        body, self._nodes = self._nodes, nodes
        return onnx.helper.make_graph(
            body, f"body{self._count}", [self._info(self._name(value), value) for value in arguments], infos
        )

    def _write_buffer(self, op: Op) -> None:
        """Write the zeros of a buffer, if a loop carries it."""
        users = [user for user, _ in op.results[0].uses]
        if all(user.name in _LOOPS and all(_stacked_slice(user, n - 2) for n in _numbers(user, op)) for user in users):
            return
        type_ = op.results[0].type
        assert isinstance(type_, TensorType)
        zero = onnx.numpy_helper.from_array(np.zeros(1, numpy_dtype(type_.element_type)))
        shape = self._constant(np.array(type_.shape, np.int64))
        self._node("ConstantOfShape", [shape], self._name(op.results[0]), value=zero)

    def _write_update(self, op: Op) -> None:
        """Write a slice of a buffer."""
        buffer, value, number = map(self._name, op.operands)
        prefix = self._name(op.results[0])
        zero = self._constant(np.array([0], np.int64))
        slices = self._node("Unsqueeze", [value, zero], f"{prefix}.slices")
        index = self._node("Reshape", [number, self._constant(np.array([1, 1], np.int64))], f"{prefix}.index")
        self._node("ScatterND", [buffer, index, slices], prefix)

    def _write_dynamic_slice(self, op: Op) -> None:
        """Write a slice whose starts are tensors."""
        value, *starts = op.operands
        prefix, sizes, dims = self._name(op.results[0]), op.attributes["sizes"], op.attributes["axes"]
        row_shape = self._constant(np.array([1], np.int64))
        rows = [
            self._node("Reshape", [self._name(item), row_shape], f"{prefix}.start{n}") for n, item in enumerate(starts)
        ]
        start = self._node("Concat", rows, f"{prefix}.starts", axis=0)
        end = self._node("Add", [start, self._constant(np.array(sizes, np.int64))], f"{prefix}.ends")
        self._node("Slice", [self._name(value), start, end, self._constant(np.array(dims, np.int64))], prefix)

    def _write_part(self, op: Op) -> None:
        """Write one of the equal parts of a tensor along a dynamic size; one that does not divide is an error."""
        value, position = map(self._name, op.operands)
        prefix = self._name(op.results[0])
        dim, parts, row_shape = (
            self._constant(np.array([number], np.int64)) for number in (op.attributes["dim"], op.attributes["parts"], 1)
        )
        size = self._node("Gather", [self._node("Shape", [value], f"{prefix}.shape"), dim], f"{prefix}.whole")
        nothing = self._checked_rest(self._node("Mod", [size, parts], f"{prefix}.rest"), prefix)
        part = self._node("Div", [size, parts], f"{prefix}.size")
        number = self._node("Reshape", [position, row_shape], f"{prefix}.number")
        start = self._node("Mul", [number, part], f"{prefix}.start")
        start = self._node("Add", [start, nothing], f"{prefix}.checked")
        end = self._node("Add", [start, part], f"{prefix}.end")
        self._node("Slice", [value, start, end, dim], prefix)

    def _checked_rest(self, rest: str, prefix: str) -> str:
        """Write a read at the rest of a division, which is 0: as there is an element 0 only, others are errors."""
        zero = self._constant(np.array([0], np.int64))
        return self._node("Gather", [zero, rest], f"{prefix}.nothing", axis=0, name=f"{_GUARD}: {prefix}")

    def _write_divided_shape(self, op: Op) -> None:
        """Write a shape divided by numbers of parts, but for 1, 0 and -1; one that they do not divide is an error."""
        shape, prefix = self._name(op.operands[0]), self._name(op.results[0])
        parts, zero, most = (
            self._constant(np.array(numbers, np.int64)) for numbers in (op.attributes["parts"], [0], [1])
        )
        large = self._node("Greater", [shape, most], f"{prefix}.large")
        rest = self._node("Where", [large, self._node("Mod", [shape, parts], f"{prefix}.mod"), zero], f"{prefix}.rest")
        nothing = self._checked_rest(rest, prefix)
        part = self._node("Add", [self._node("Div", [shape, parts], f"{prefix}.div"), nothing], f"{prefix}.part")
        self._node("Where", [large, part, shape], prefix)

    def _write_whole_shape(self, op: Op) -> None:
        """Write the sizes of a tensor from those of a part: what is not known has a number of parts."""
        value, prefix, bounds = self._name(op.operands[0]), self._name(op.results[0]), op.attributes
        sizes = self._node("Shape", [value], f"{prefix}.sizes", start=bounds["start"], end=bounds["end"])
        factors, known = (self._constant(np.array(bounds[name], np.int64)) for name in ("factors", "known"))
        self._node("Add", [self._node("Mul", [sizes, factors], f"{prefix}.open"), known], prefix)

    def _write_mask(self, op: Op) -> None:
        """Write a choice between a tensor and a scalar by the number of the element."""
        value, count, fill = op.operands
        dim, prefix, type_ = op.attributes["dim"], self._name(op.results[0]), value.type
        # Other dimensions may have dynamic sizes, this one has padding.
        assert isinstance(type_, TensorType)
        size = type_.shape[dim]
        assert size is not None
        shape = [size if other == dim else 1 for other in range(type_.rank)]
        numbers = self._constant(np.arange(size, dtype=np.int64).reshape(shape))
        inside = self._node("Less", [numbers, self._name(count)], f"{prefix}.inside")
        self._node("Where", [inside, self._name(value), self._name(fill)], prefix)


_COLLECTIVES = {
    f"{_SPACE}offset": _Writer._write_offset,
    f"{_SPACE}scalar": _Writer._write_scalar,
    f"{_SPACE}dynamic_slice": _Writer._write_dynamic_slice,
    f"{_SPACE}mask": _Writer._write_mask,
    f"{_SPACE}part": _Writer._write_part,
    f"{_SPACE}divided_shape": _Writer._write_divided_shape,
    f"{_SPACE}whole_shape": _Writer._write_whole_shape,
}


_LOOP_OPS = {"onnx.If": _Writer._write_if, BUFFER: _Writer._write_buffer, UPDATE: _Writer._write_update}
_LOOPS = ("onnx.Loop", "onnx.Scan")


def _end(block: Block) -> Op:
    end = block.terminator
    assert end is not None
    return end


def _numbers(user: Op, op: Op) -> list[int]:
    """Return the numbers of the operands of an op that are the result of another one."""
    return [number for number, value in enumerate(user.operands) if value is op.results[0]]


def _stacked_slice(op: Op, number: int) -> Value | None:
    """Return what each iteration of a loop writes to the slice of its own number of a buffer, and does not read.

    Args:
        op: The loop.
        number: The number of the carried value.

    Returns:
        The slice; None where the carried value is another one.
    """
    block = op.regions[0].blocks[0]
    initial, buffer, final = op.operands[2 + number], block.arguments[2 + number], _end(block).operands[1 + number]
    update = final.owner
    if not isinstance(update, Op) or update.name != UPDATE or len(final.uses) > 1 or len(buffer.uses) > 1:
        return None
    is_fresh = isinstance(initial.owner, Op) and initial.owner.name == BUFFER
    target, value, index = update.operands
    return value if is_fresh and target is buffer and index is block.arguments[0] else None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _operand(name: str, value: Any) -> Any:
    """Return the contents of the operand that an attribute of an op stands for."""
    array = np.array(value, np.float32 if name in FLOATS else np.int64)
    return array if name in SCALARS else array.reshape(-1)


def _scalar(element_type: str, number: str) -> Any:
    """Return a scalar from its text, or the number that a combiner leaves alone."""
    dtype = numpy_dtype(element_type)
    if number in ("min", "max"):
        if dtype.kind == "b":
            return np.array(number == "min", dtype)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return np.array(limits.max if number == "min" else limits.min, dtype)
        return np.array(np.inf if number == "min" else -np.inf, dtype)
    value = _NEUTRAL[number] if number in _NEUTRAL else float(number)
    return np.array(value if dtype.kind != "u" or value >= 0 else np.iinfo(dtype).max).astype(dtype)


def _rename_captured(proto: NodeProto, names: list[str]) -> None:
    """Give what the graphs of a node take from around it other names."""
    renamed = dict(zip(captured(proto), names, strict=True))
    for graph in node_graphs(proto):
        _rename(graph, renamed)


def _rename(graph: Any, renamed: dict[str, str]) -> None:
    bound_names = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    bound_names.update(name for node in graph.node for name in node.output)
    inner = {name: new for name, new in renamed.items() if name not in bound_names}
    for node in graph.node:
        node.input[:] = [inner.get(name, name) for name in node.input]
        for nested in node_graphs(node):
            _rename(nested, inner)
    for info in graph.output:
        info.name = inner.get(info.name, info.name)
