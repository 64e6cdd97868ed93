"""Whole dimensions for the factors of an op that it cannot split."""

from __future__ import annotations

from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.local.agreement import without_factors
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding


def make_whole(program: Program, op: Op, rule: OpShardingRule, factors: set[int]) -> None:
    """Make the dimensions of some factors whole for an op, and reshard its results to what they were.

    Args:
        program: The program of the op; it changes.
        op: The op.
        rule: Its rule.
        factors: The factors.
    """
    for number, (value, mapping) in enumerate(zip(op.operands, rule.operand_mappings, strict=True)):
        before = program.sharding(value)
        after = without_factors(before, mapping, factors)
        if after is not None and after != before:
            op.set_operand(number, _resharded(program, op, value, after, is_behind=False))
    for value, mapping in zip(op.results, rule.result_mappings, strict=True):
        before = program.sharding(value)
        after = without_factors(before, mapping, factors)
        if before is not None and after is not None and after != before:
            resharded = _resharded(program, op, value, before, is_behind=True)
            program.shardings[value.id] = after
            value.replace_all_uses_with(resharded, except_op=resharded.defining_op)


def _resharded(program: Program, op: Op, value: Value, sharding: TensorSharding, *, is_behind: bool) -> Value:
    """Return a value with another sharding, by a reshard before or behind an op."""
    if op.parent is None:
        raise ValueError(f"{op!r} is in no block")
    reshard_op = Op(program, RESHARD, [value], [value.type], {"sharding": sharding})
    op.parent.insert_after(op if is_behind else op.prev, reshard_op)
    program.shardings[reshard_op.results[0].id] = sharding
    return reshard_op.results[0]
