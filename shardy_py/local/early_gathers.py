"""Gathers and slices before the op that made what is gathered or sliced.

A broadcast sends what it spreads, a constant nothing; and of what is made from scalars each device makes its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from shardy_py.ir.graph.op_names import ALL_SLICE
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard
from shardy_py.ir.interfaces.ops import ConstantLike, OpSemantics, Pure
from shardy_py.local.regrid import Change, gather
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding


def cheaper_producer(op: Op, semantics: OpSemantics) -> Op | None:
    """Return the producer of an all-gather's operand, if its own operands are at most half as large, or None."""
    producer = op.operands[0].defining_op
    if producer is None or producer.parent is not op.parent or len(producer.results) != 1 or producer.regions:
        return None
    if not semantics.has_trait(producer, Pure) and not semantics.has_trait(producer, ConstantLike):
        return None
    sizes = [prod(static_shape(value.type) or ()) for value in producer.operands]
    return producer if 2 * sum(sizes) <= prod(static_shape(op.results[0].type) or ()) else None


def common_slice_of_users(op: Op, semantics: OpSemantics) -> Value | None:
    """Return one of the equal slices that all users take of the result of an op on scalars, or None."""
    if len(op.results) != 1 or op.regions or not semantics.has_trait(op, Pure):
        return None
    users = op.results[0].users
    if not users or any(user.name != ALL_SLICE for user in users):
        return None
    if any(static_shape(value.type) != () for value in op.operands):
        return None
    part, *others = (user.results[0] for user in users)
    sharding = op.program.sharding(part)
    return part if all(op.program.sharding(other) == sharding for other in others) else None


def gathered_operands(
    op: Op, shard: Shard, producer: Shard, rule: OpShardingRule | None, *, one_by_one: bool
) -> Shard | None:
    """Return the producer of an all-gather's operand, on gathered operands; None where its rule does not map the axes.

    Args:
        op: The all-gather.
        shard: The all-gather with its operand on the device.
        producer: The op that makes the operand, with its operands on the device.
        rule: The rule of the producer.
        one_by_one: Whether dimensions are gathered one after the other.
    """
    before, after = shard.operand_shardings[0], shard.result_shardings[0]
    if before is None or after is None:
        return None
    if not producer.op.operands:
        return evolve(producer, result_shardings=[after])
    changes = None if rule is None else _changes(op, rule, before, after)
    if rule is None or changes is None:
        return None
    values, shardings = list(producer.operands), list(producer.operand_shardings)
    for number, (sharding, mapping) in enumerate(zip(shardings, rule.operand_mappings, strict=True)):
        if sharding is None or not mapping:
            continue
        dims, lost = list(sharding.dim_shardings), [tuple[AxisRef, ...]()] * sharding.rank
        for dim, factors in enumerate(mapping):
            if not set(factors) & changes.keys():
                continue
            old, new, minor = changes[factors[0]]
            if len(factors) > 1 or tuple(dims[dim].axes) != old:
                return None
            dims[dim], lost[dim] = DimensionSharding(new), minor
        wider = TensorSharding(sharding.mesh, tuple(dims))
        change = Change.between(producer, producer.op.operands[number].shape, sharding, wider)
        values[number] = gather(producer, values[number], change, lost, one_by_one=one_by_one)
        shardings[number] = wider
    return evolve(producer, operands=values, operand_shardings=shardings, result_shardings=[after])


def _changes(
    op: Op, rule: OpShardingRule, before: TensorSharding, after: TensorSharding
) -> dict[int, tuple[tuple[AxisRef, ...], ...]] | None:
    """Return the axes of each gathered factor before and after, and those along which it is gathered.

    None where factors are not dimensions of their own.
    """
    changes = {}
    gathering: Sequence[Sequence[AxisRef]] = op.attributes["gathering_axes"].axes_per_dim
    for dim, axes in enumerate(gathering):
        factors = rule.result_mappings[0][dim]
        if axes and (len(factors) != 1 or not rule.is_pass_through(factors[0])):
            return None
        if axes:
            ends = (tuple(item.of_dimension(dim).axes) for item in (before, after))
            changes[factors[0]] = (*ends, tuple(axes))
    return changes
