"""Neutral values in the place of padding along reduced dimensions, so that ops see only real elements."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding


def without_padding(op: Op, shard: Shard, rule: OpShardingRule, *, has_form: bool = False) -> Shard:
    """Return an op on operands whose padding along reduced dimensions holds neutral values.

    The neutral value is that of the factor's combiner: zeros where partial results are added, for all operands, so that
    a product of them is zero, too. An op of which this is not true has its own local form, and masks its operands.

    Args:
        op: The op of the global program.
        shard: The op with its operands on the device.
        rule: Its rule.
        has_form: Whether the op has a form of its own: then it sees itself to factors without a combiner.

    Raises:
        CannotLocalize: there is no neutral value.
    """
    reductions = shard.semantics.get_reductions(op)
    combiners = reductions.combiners
    operands = list(shard.operands)
    for number, mapping in enumerate(rule.operand_mappings):
        padded = shard.padded_dims(number) if mapping else []
        for factor in rule.reduction_factors:
            dims = [dim for dim in padded if factor in mapping[dim]]
            if dims and (combiners.get(factor) is not None or not has_form):
                masked = evolve(shard, operands=operands)
                combiner = combiners.get(factor) if has_form else reductions.neutral(factor)
                fill = _neutral(masked, number, combiner, reductions.no_neutral)
                operands[number] = masked.masked(number, dims, fill)
    return evolve(shard, operands=operands)


def _neutral(shard: Shard, number: int, combiner: Combiner | None, problem: str) -> Value:
    """Return the neutral value of a combiner for an operand."""
    type_ = shard.operands[number].type
    if combiner is None or not isinstance(type_, TensorType):
        raise no_local_form(f"operand {number} has padding along a reduced dimension, and {problem}")
    fill = shard.ops.scalar(shard.emit, type_.element_type, combiner)
    if fill is None:
        raise no_local_form(f"{type_.element_type} has no neutral value of {combiner.value}")
    return fill


def fill_padding(
    shard: Shard, value: Value, global_value: Value, sharding: TensorSharding | None, number: float
) -> Value:
    """Return a value with a number in its padding; unchanged where the element type has no such number.

    Args:
        shard: What emits ops.
        value: The value on the device.
        global_value: The value of the global program.
        sharding: Its sharding.
        number: The number, which must not change what the program computes.
    """
    type_ = global_value.type
    if sharding is None or not isinstance(type_, TensorType):
        return value
    padded = {
        dim: size
        for dim in shard.sharded_dims(sharding)
        if (size := type_.shape[dim]) is not None and size % shard.parts(sharding, dim)
    }
    fill = shard.ops.scalar(shard.emit, type_.element_type, number) if padded else None
    if fill is None:
        return value
    for dim, size in padded.items():
        value = shard.ops.mask(shard.emit, value, dim, shard.real_size(sharding, dim, size), fill)
    return value
