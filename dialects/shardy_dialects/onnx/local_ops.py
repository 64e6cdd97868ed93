"""Nodes for data that moves between devices, and for parts of tensors that depend on the device.

Those of the dialect ``collective`` are no operators of ONNX: `shardy_py.onnx` writes them as nodes of a domain of their
own, or as several operators. All else is ONNX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.interfaces.local import Groups, LocalEmitter, LocalOps, Pairs
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

COLLECTIVES = ("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute")
SPACE = "collective"


@frozen
class OnnxLocalOps(LocalOps):
    """The nodes of the dialect ``collective``, and operators of ONNX."""

    are_general: bool = False

    def all_gather(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups) -> Value:
        """Return the shards of each group, joined along a dimension."""
        shape = list(value.shape)
        shape[dim] *= len(groups[0])
        return _collective(emit, "all_gather", [value], shape, dim=dim, groups=groups)

    def all_reduce(self, emit: LocalEmitter, value: Value, groups: Groups, combiner: Combiner) -> Value:
        """Return the combination of the values of each group."""
        return _collective(emit, "all_reduce", [value], value.shape, groups=groups, combiner=combiner.value)

    def reduce_scatter(self, emit: LocalEmitter, value: Value, dim: int, groups: Groups, combiner: Combiner) -> Value:
        """Return one part per device of the combination of the values of each group."""
        shape = list(value.shape)
        shape[dim] //= len(groups[0])
        return _collective(emit, "reduce_scatter", [value], shape, dim=dim, groups=groups, combiner=combiner.value)

    def all_to_all(self, emit: LocalEmitter, value: Value, split_dim: int, concat_dim: int, groups: Groups) -> Value:
        """Return the parts that the devices of each group send each other, joined along a dimension."""
        shape, count = list(value.shape), len(groups[0])
        shape[split_dim] //= count
        shape[concat_dim] *= count
        dims = {"split_dim": split_dim, "concat_dim": concat_dim}
        return _collective(emit, "all_to_all", [value], shape, groups=groups, **dims)

    def collective_permute(self, emit: LocalEmitter, value: Value, pairs: Pairs) -> Value:
        """Return the value of the source of each device; zeros where it has none."""
        return _collective(emit, "collective_permute", [value], value.shape, groups=tuple(map(tuple, pairs)))

    def offset(self, emit: LocalEmitter, table: Sequence[int] | None) -> Value:
        """Return the scalar that a table has for the device; 0 without a table."""
        return emit.op(f"{SPACE}.offset", (), [TensorType((), "i64")], {"table": tuple(table or (0,))}).result

    def dynamic_slice(self, emit: LocalEmitter, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Return the part of a tensor at a start."""
        return _collective(emit, "dynamic_slice", [value, *starts], sizes, sizes=tuple(sizes))

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
        if cut != list(value.shape):
            whole = {"starts": (0,) * rank, "ends": tuple(cut), "axes": tuple(range(rank))}
            value = _node(emit, "Slice", [value], cut, **whole)
        if cut == list(shape):
            return value
        pads = (*((0,) * rank), *(size - old for size, old in zip(shape, cut, strict=True)))
        return _node(emit, "Pad", [value], shape, pads=pads)

    def mask(self, emit: LocalEmitter, value: Value, dim: int, count: Value | int, fill: Value) -> Value:
        """Return a tensor with a scalar in the place of all but the first elements along a dimension."""
        limit = count if isinstance(count, Value) else self.offset(emit, (count,))
        return _collective(emit, "mask", [value, limit, fill], value.shape, dim=dim)

    def scalar(self, emit: LocalEmitter, element_type: str, number: Combiner | float) -> Value | None:
        """Return a constant scalar; None where the element type has no such number."""
        text = number.value if isinstance(number, Combiner) else repr(float(number))
        if isinstance(number, Combiner) and number not in _NEUTRAL:
            return None
        return emit.op(f"{SPACE}.scalar", (), [TensorType((), element_type)], {"number": text}).result

    def constant(self, emit: LocalEmitter, op: Op, type_: TensorType) -> Value | None:
        """Return nothing: a constant is made whole, and then cut."""
        return None

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

    def read_collective(self, op: Op) -> LocalCollective | None:
        """Return the collective that a node is, or None."""
        kind = op.name.removeprefix(f"{SPACE}.")
        if kind not in COLLECTIVES or op.name == kind:
            return None
        return LocalCollective(kind, op.results[0].type, tuple(map(tuple, op.attributes["groups"])), op.location)

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


def _collective(
    emit: LocalEmitter, kind: str, operands: Sequence[Value], shape: Sequence[int], **attributes: Attribute
) -> Value:
    return emit.op(f"{SPACE}.{kind}", operands, [_like(operands[0], shape)], attributes).result


def _node(
    emit: LocalEmitter, name: str, operands: Sequence[Value], sizes: Sequence[int], **attributes: Attribute
) -> Value:
    return emit.op(f"onnx.{name}", operands, [_like(operands[0], sizes)], attributes).result


def _like(value: Value, shape: Sequence[int]) -> TensorType:
    if not isinstance(value.type, TensorType):
        raise TypeError(f"{value.type} is no tensor")
    return TensorType(tuple(shape), value.type.element_type)
