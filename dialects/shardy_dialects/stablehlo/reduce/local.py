"""The local form of a reduction: the initial value counts once, on one of the devices whose results combine."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_dialects.stablehlo.elementwise.ops import COMBINING, CONVERT, SELECT, XOR
from shardy_dialects.stablehlo.local.candidates import choose_among_all
from shardy_dialects.stablehlo.local.literals import array, neutral_literal
from shardy_dialects.stablehlo.local.writer import element_type_of
from shardy_dialects.stablehlo.regions import COMBINERS, is_choice, region_combiner, region_ops
from shardy_dialects.stablehlo.shape import BROADCAST
from shardy_dialects.stablehlo.splats import splat_of, splat_text
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, tensor
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_positions import replica_groups

NEUTRAL = {Combiner.ADD: 0, Combiner.MUL: 1}
"""The neutral values of the combiners for which it matters how often a value counts."""


def localize_reduce(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reduction of the shards, from neutral values; the initial values are combined behind it.

    XLA leaves initial values out where a single element is reduced, which a shard may have though the tensor has more.
    """
    shard.check_kinds()
    is_first, combiner = _first_positions(op, shard), region_combiner(op)
    if all(is_first):
        return shard.copy()
    if combiner is None or (_is_bitwise(op, combiner) and not shard.is_resolved):
        return _reduced_again(op, shard)
    count = len(op.results)
    operands = list(shard.operands)
    later: dict[int, Value] = {}
    for number, initial in enumerate(shard.operands[count:]):
        neutral = None if _is_neutral(op.operands[count + number], combiner) else _neutral(shard, initial, combiner)
        if neutral is not None:
            operands[count + number] = neutral
            later[number] = initial if combiner.is_idempotent else _only_on_first(shard, initial, neutral, is_first)
    results = evolve(shard, operands=operands).copy()
    for number, initial in later.items():
        results[number] = _combined(shard, results[number], initial, combiner)
    return results


def _reduced_again(op: Op, shard: Shard) -> Combined:
    """Return the reduction of what the shards are reduced to, as for the largest element and its place."""
    count, sharding, dims = len(op.results), shard.operand_shardings[0], op.attributes["dimensions"]
    if sharding is None or shard.is_resolved:
        raise no_local_form("its partial results cannot be combined by one collective per result")
    if any(shard.operands[number].shape != shard.operands[0].shape for number in range(count)):
        # An all-gather may have been left out for the first operand only.
        raise no_local_form("its operands are not in the same parts")
    initial, neutral = shard.operands[count:], _neutral_initials(op, shard)
    operands = [shard.masked(number, dims, neutral[number]) for number in range(count)]
    axes = [axis for dim in dims for axis in sharding.of_dimension(dim).axes]
    groups = replica_groups(shard.mesh(sharding), axes)
    partial = evolve(shard, operands=[*operands, *neutral]).copy()

    def reduce_rows(candidates: Sequence[Value]) -> Sequence[Value]:
        types = [TensorType(value.shape[1:], element_type_of(value)) for value in candidates]
        changes = {"dimensions": (0,)}
        return shard.emit.op_like(op, [*candidates, *initial], types, changes, shard.regions()).results

    return Combined(choose_among_all(shard, partial, len(partial[0].shape), groups, reduce_rows))


def _neutral_initials(op: Op, shard: Shard) -> list[Value]:
    """Return scalars that may count once per shard, and in the place of padding, before the initial values count.

    Where each result is one of two elements, these are the initial values: of a value and itself it makes the value.

    Raises:
        CannotLocalize: the region computes something of which no neutral values are known.
    """
    initial = shard.operands[len(op.results) :]
    if is_choice(op):
        return list(initial)
    names = region_ops(op)
    types = [getattr(value.type, "element_type", "") for value in initial]
    neutral_or_none = [_neutral_of(shard, name, type_) for name, type_ in zip(names, types, strict=True)]
    neutral = [value for value in neutral_or_none if value is not None]
    if len(neutral) < len(initial):
        raise no_local_form("its initial values would count once per shard, and no values are neutral for its region")
    return neutral


def _neutral_of(shard: Shard, name: str | None, element_type: str) -> Value | None:
    """Return a scalar that changes nothing where an op combines elements, or None."""
    number = 0 if name == XOR else COMBINERS.get(name or "")
    return None if number is None else shard.ops.scalar(shard.emit, element_type, number)


def _is_bitwise(op: Op, combiner: Combiner) -> bool:
    """Return whether integers combine bit by bit, which no collective of XLA does."""
    types = (getattr(value.type, "element_type", "") for value in op.results)
    return combiner in (Combiner.AND, Combiner.OR) and any(type_ != "i1" for type_ in types)


def _is_neutral(value: Value, combiner: Combiner) -> bool:
    """Return whether a scalar is known to change nothing."""
    text, number = splat_text(value), splat_of(value)
    if number is not None and not combiner.is_idempotent:
        return number == (combiner is Combiner.MUL)
    return text is not None and text == neutral_literal(combiner, getattr(value.type, "element_type", ""))


def _neutral(shard: Shard, value: Value, combiner: Combiner) -> Value | None:
    """Return the scalar that changes nothing; None where there is none, and it does not matter how often one counts.

    Raises:
        CannotLocalize: there is none, and it matters.
    """
    neutral = shard.ops.scalar(shard.emit, getattr(value.type, "element_type", ""), combiner)
    if neutral is None and not combiner.is_idempotent:
        raise no_local_form("its initial value would count once per shard")
    return neutral


def _combined(shard: Shard, value: Value, initial: Value, combiner: Combiner) -> Value:
    """Return a result combined with its initial value."""
    dims = {"broadcast_dimensions": array(())}
    spread = shard.emit.op(BROADCAST, [initial], [value.type], dims).result
    return shard.emit.op(COMBINING[combiner], [value, spread], [value.type]).result


def _first_positions(op: Op, shard: Shard) -> list[int]:
    """Return 1 for each device that has the first part along all reduced dimensions, and 0 for the others."""
    sharding = shard.operand_shardings[0]
    cut = [dim for dim in op.attributes["dimensions"] if shard.parts(sharding, dim) > 1]
    if sharding is None or not cut:
        return [1]
    columns = zip(*(shard.positions(sharding, dim) for dim in cut), strict=True)
    return [int(not any(positions)) for positions in columns]


def _only_on_first(shard: Shard, value: Value, neutral: Value, is_first: Sequence[int]) -> Value:
    """Return a scalar on the first device, and the neutral value on the others."""
    flag = shard.ops.offset(shard.emit, is_first)
    chosen = shard.emit.op(CONVERT, [flag], [tensor(dtype="i1")]).result
    return shard.emit.op(SELECT, [chosen, value, neutral], [value.type]).result
