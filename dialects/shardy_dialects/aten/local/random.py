"""Local forms of operators that draw numbers: each device draws those of the whole tensor and keeps its part.

So the numbers are those that one process draws, as long as the generators of all processes are in the same state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.aten.arguments import attribute
from shardy_dialects.aten.creation import RANDOM, RANDOM_LIKE
from shardy_dialects.aten.local.ops import aten
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Localize, Shard, local_by_types

_DRAWN_AS_FLOATS = ("bf16", "f16")
"""Element types of probabilities with which numbers of single precision are compared."""


def _drawn(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the device's part of numbers that depend on no operand."""
    return _own_parts(op, shard, shard.operands)


def _drawn_like(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the device's part of numbers for which an operand says the sizes."""
    order = attribute(op, "memory_order")
    if order is not None:
        return _own_parts(op, shard, [_laid(op, shard, order)])
    if _is_whole(shard):
        return local_by_types(op, shard)
    return _own_parts(op, shard, [_new(op, shard, "new_empty.default")])


def _bernoulli(op: Op, shard: Shard) -> Sequence[Value]:
    """Return ones with the probabilities of an operand: where a number between 0 and 1 is below them."""
    if _is_whole(shard):
        return local_by_types(op, shard)
    chances, shape = shard.operands[0], shard.result_shape()
    whole = _new(op, shard, "new_empty.default", is_single=True)
    drawn = aten(shard.emit, "rand_like.default", {"self": whole}, whole.shape)
    part = _own_part(shard, drawn, 0)
    names = {"operand_names": ("self", "other")}
    is_below = shard.emit.op("aten.gt.Tensor", [chances, part], [TensorType(shape, "i1")], names).result
    return [shard.emit.op("aten.type_as.default", [is_below, chances], [shard.result_type()], names).result]


def _dropout(op: Op, shard: Shard) -> Sequence[Value]:
    """Return an operand with the device's part of the zeros and the factor that all of it would get."""
    if _is_whole(shard) or attribute(op, "train") is False:
        return local_by_types(op, shard)
    kept, *masks = _own_parts(op, shard, [_new(op, shard, "new_ones.default")])
    value = shard.operands[0]
    if not masks:
        return [aten(shard.emit, "mul.Tensor", {"self": value, "other": kept}, shard.result_shape())]
    chance = attribute(op, "p", 0.5)
    value = aten(shard.emit, "mul.Tensor", {"self": value, "other": masks[0]}, shard.result_shape())
    scale = 0.0 if chance == 1 else 1 / (1 - chance)
    return [aten(shard.emit, "mul.Scalar", {"self": value}, shard.result_shape(), other=scale), *masks]


def _is_whole(shard: Shard) -> bool:
    return not any(map(shard.sharded_dims, (*shard.operand_shardings, *shard.result_shardings)))


def _new(op: Op, shard: Shard, name: str, *, is_single: bool = False, order: Sequence[int] | None = None) -> Value:
    """Return a new tensor of the sizes of the whole first operand, and of its element type or of single precision.

    Args:
        op: The op.
        shard: The shard.
        name: The operator that makes it.
        is_single: Whether short numbers become those of single precision.
        order: The order of the dimensions, if it is another one.
    """
    type_ = op.operands[0].type
    shape = tuple(size or 0 for size in type_.shape) if isinstance(type_, TensorType) else ()
    shape = shape if order is None else tuple(shape[dim] for dim in order)
    like = {"self": shard.operands[0]}
    if not is_single or not isinstance(type_, TensorType) or type_.element_type not in _DRAWN_AS_FLOATS:
        return aten(shard.emit, name, like, shape, size=shape)
    attributes = {"operand_names": ("self",), "size": shape, "dtype": "torch.float32"}
    return shard.emit.op(f"aten.{name}", shard.operands[:1], [TensorType(shape, "f32")], attributes).result


def _laid(op: Op, shard: Shard, order: Sequence[int]) -> Value:
    """Return a new tensor of the sizes of the whole first operand, whose dimensions have an order in memory."""
    made = _new(op, shard, "new_empty.default", order=order)
    back = [order.index(dim) for dim in range(len(order))]
    shape = [made.shape[place] for place in back]
    return aten(shard.emit, "permute.default", {"self": made}, shape, dims=tuple(back))


def _own_parts(op: Op, shard: Shard, operands: Sequence[Value]) -> list[Value]:
    """Return the device's parts of the results that an op has for whole operands."""
    made = shard.emit.op_like(op, operands, [value.type for value in op.results])
    return [_own_part(shard, value, number) for number, value in enumerate(made.results)]


def _own_part(shard: Shard, value: Value, number: int) -> Value:
    sharding = shard.result_shardings[number]
    return value if sharding is None else shard.own_part(value, sharding)


RANDOM_FORMS: Mapping[str, Localize] = {
    **{f"aten.{name}": _drawn for name in RANDOM},
    **{f"aten.{name}": _drawn_like for name in RANDOM_LIKE},
    "aten.bernoulli.default": _bernoulli,
    "aten.dropout.default": _dropout,
    "aten.native_dropout.default": _dropout,
}
"""The forms by the name of the overload."""
