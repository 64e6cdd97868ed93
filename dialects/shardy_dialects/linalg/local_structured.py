"""Local forms of structured ops: loops run over the shards, as their bounds follow from the shapes."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.linalg.bodies import Body, initial_outputs
from shardy_dialects.linalg.local_windows import with_windows
from shardy_dialects.linalg.loops import Loops, LoopsOf
from shardy_dialects.linalg.neutral import keeps_neutral
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import Shard, no_local_form
from shardy_py.sharding.rule import FactorKind, OpShardingRule


def localize_structured(loops_of: LoopsOf, op: Op, shard: Shard) -> Sequence[Value]:
    """Return the results of a structured op on shards of its tensors.

    Padding along reduced loops holds the neutral value of the combiner already; here is checked that this is enough.
    Where windows move along a sharded dimension, devices send each other what these read.

    Args:
        loops_of: Gives the loops of the op.
        op: The op of the global program.
        shard: The op with its operands on the device.

    Raises:
        CannotLocalize: it needs a dimension whole, would count an initial value once per shard, or would see padding.
    """
    shard.check_kinds([FactorKind.NEED_REPLICATION])
    rule = shard.semantics.get_sharding_rule(op)
    if rule is None:
        return shard.copy()
    if rule.reduction_factors:
        _check_reduction(op, shard, rule, loops_of(op))
    return with_windows(op, shard, rule, loops_of(op)).copy()


def _check_reduction(op: Op, shard: Shard, rule: OpShardingRule, loops: Loops) -> None:
    """Check that initial values count once, and that padding changes no result.

    Raises:
        CannotLocalize: it is not so.
    """
    reduced = _reduced_dims(shard, rule)
    if any(reduced) and initial_outputs(op, loops.combiner):
        raise no_local_form("its initial value would count once per shard")
    padded = {number: set(shard.padded_dims(number)).intersection(dims) for number, dims in enumerate(reduced) if dims}
    if not any(padded.values()):
        return
    masked = frozenset(number for number, dims in padded.items() if dims)
    if not keeps_neutral(op, Body.of(op), loops, masked):
        raise no_local_form("its body makes of the padding along a reduced loop more than a neutral value")


def _reduced_dims(shard: Shard, rule: OpShardingRule) -> list[list[int]]:
    """Return the sharded dimensions of each operand that belong to reductions."""
    result = []
    for mapping, sharding in zip(rule.operand_mappings, shard.operand_shardings, strict=True):
        dims = shard.sharded_dims(sharding) if mapping else []
        result.append([dim for dim in dims if set(mapping[dim]).intersection(rule.reduction_factors)])
    return result
