"""Nodes for data that moves between devices, and for parts of tensors that depend on the device.

Those of the dialect ``collective`` are no operators of ONNX: `shardy_py.onnx` writes them as nodes of a domain of their
own, or as several operators. All else is ONNX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.local import LocalEmitter, no_local_form
from shardy_py.ir.interfaces.named_collectives import NamedCollectives, type_like
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.unknown_size import is_derived
from shardy_py.values import frozen

SPACE = "collective"


@frozen
class OnnxLocalOps(NamedCollectives):
    """The nodes of the dialect ``collective``, and operators of ONNX."""

    space: ClassVar[str] = SPACE

    are_general: bool = False

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        return emit.op(f"{SPACE}.offset", (), [TensorType((), "i64")], {"table": tuple(table or (0,))}).result

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start; along a dynamic size one of several equal parts."""
        cut = [dim for dim, size in enumerate(sizes) if size != value.shape[dim]]
        for dim in filter(lambda dim: is_derived(sizes[dim]), cut):
            shape = [sizes[dim] if other == dim else size for other, size in enumerate(value.shape)]
            parts = value.shape[dim] // sizes[dim]
            position = _in_parts(starts[dim], sizes[dim])
            value = self.device_op(emit, "part", [value, position], shape, dim=dim, parts=parts)
        cut = [dim for dim in cut if not is_derived(sizes[dim])]
        if not cut:
            return value
        attributes: dict[str, Attribute] = {"axes": tuple(cut), "sizes": tuple(sizes[dim] for dim in cut)}
        return self.device_op(emit, "dynamic_slice", [value, *(starts[dim] for dim in cut)], sizes, **attributes)

    def reshape(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return the elements in another shape."""
        return _node(emit, "Reshape", [value], shape, shape=tuple(shape))

    def transpose(self, emit: LocalEmitter, value: Value, permutation: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        return _node(emit, "Transpose", [value], [value.shape[dim] for dim in permutation], perm=tuple(permutation))

    def resize(self, emit: LocalEmitter, value: Value, shape: Sequence[int]) -> Value:
        """Return a tensor cut or extended with zeros at the high ends of its dimensions."""
        if tuple(shape) == tuple(value.shape):
            return value
        rank = len(shape)
        cut = [min(size, old) for size, old in zip(shape, value.shape, strict=True)]
        axes = tuple(dim for dim in range(rank) if cut[dim] != value.shape[dim])
        if axes:
            ends = tuple(cut[dim] for dim in axes)
            value = _node(emit, "Slice", [value], cut, starts=(0,) * len(axes), ends=ends, axes=axes)
        if cut == list(shape):
            return value
        pads = (*((0,) * rank), *(size - old for size, old in zip(shape, cut, strict=True)))
        return _node(emit, "Pad", [value], shape, pads=pads)

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension."""
        limit = count if isinstance(count, Value) else self.offset(emit, (count,))
        return self.device_op(emit, "mask", [value, limit, fill], value.shape, dim=dim)

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number."""
        text = number.value if isinstance(number, Combiner) else repr(float(number))
        if isinstance(number, Combiner) and number not in _NEUTRAL:
            return None
        return emit.op(f"{SPACE}.scalar", (), [TensorType((), element_type)], {"number": text}).result

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return a buffer of another size, and nothing for a constant: it is made whole, and then cut."""
        return emit.op(op.name, (), [type_]).result if op.name == "onnx.scan_buffer" else None

    def whole_constant(self, emit: LocalEmitter, op: Op) -> Value:
        """Return the constant of a node as it is."""
        return emit.op_like(op, (), [op.results[0].type]).result

    def padded_attributes(
        self, op: Op, operands: Sequence[Sequence[int]], results: Sequence[Type]
    ) -> Mapping[str, Attribute] | None:
        """Return the shape that a node holds, changed for padded tensors; None where it holds none."""
        type_ = results[0]
        if "shape" not in op.attributes or not isinstance(type_, TensorType):
            return None
        return {"shape": type_.shape}

    def collected(self, op: Op, dim: int, parts: int) -> float | None:
        """Return 0 for a node that reads the sizes of its operand only: it sends nothing."""
        return 0.0 if op.name in ("onnx.Shape", "onnx.Size") else None

    def is_device_number(self, op: Op) -> bool:
        """Return whether a node gives an entry of a table for the device, or a number."""
        return op.name in (f"{SPACE}.offset", f"{SPACE}.scalar")

    def fold_device(self, program: Program, device: int) -> None:
        """Put the number of a device into a local program."""
        for op in program.walk():
            if op.name == f"{SPACE}.offset":
                table = op.attributes["table"]
                op.attributes["table"] = (table[device if len(table) > 1 else 0],)


_NEUTRAL = (Combiner.ADD, Combiner.MUL, Combiner.MIN, Combiner.MAX, Combiner.AND, Combiner.OR)


def _in_parts(start: Value, size: int) -> Value:
    """Let a new table of starts, multiples of a size that is not known, have the numbers of the parts instead."""
    table = start.owner
    assert isinstance(table, Op)
    numbers = [divmod(item, size) for item in table.attributes["table"]]
    if start.uses or any(rest for _, rest in numbers):
        raise no_local_form("a part of a dynamic size begins elsewhere than at a multiple of its size")
    table.attributes["table"] = tuple(number for number, _ in numbers)
    return start


def _node(
    emit: LocalEmitter, name: str, operands: Sequence[Value], sizes: Sequence[int], **attributes: Attribute
) -> Value:
    return emit.op(f"onnx.{name}", operands, [type_like(operands[0], sizes)], attributes).result
