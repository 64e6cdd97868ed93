"""Control flow: branches, loops, and scans that carry their stacked outputs."""

from __future__ import annotations

from shardy_dialects.aten.arguments import REPLICATED, Rule, operand_shape
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types, local_constant
from shardy_py.plugins import (
    BranchDataFlow,
    ConstantLike,
    Dialect,
    IsTerminator,
    LoopDataFlow,
    Pure,
    RecursiveMemoryEffects,
)
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder


def _slice(op: Op) -> Rule:
    """Return the rule of taking one round's slice: the dimension of the rounds is whole."""
    shape = operand_shape(op, 0)
    builder = OpShardingRuleBuilder.for_op(op).tie({0: 0}, {}, shape[0], kind=REPLICATED)
    for dim, size in enumerate(shape[1:]):
        builder.tie({0: dim + 1}, {0: dim}, size)
    return builder.build()


def _update(op: Op) -> Rule:
    """Return the rule of putting one round's slice into the stacked output."""
    shape = operand_shape(op, 0)
    builder = OpShardingRuleBuilder.for_op(op).tie({0: 0}, {0: 0}, shape[0], kind=REPLICATED)
    for dim, size in enumerate(shape[1:]):
        builder.tie({0: dim + 1, 1: dim}, {0: dim + 1}, size)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the ops."""
    dialect.op("higher_order.cond", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow())
    dialect.op("higher_order.while_loop", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow(yielding=(1,)))
    dialect.op("higher_order.scan", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow())
    dialect.op("higher_order.yield", traits=[IsTerminator, Pure])
    dialect.op("higher_order.scan_buffer", traits=[ConstantLike, Pure], local=local_constant)
    dialect.op("higher_order.scan_slice", traits=[Pure], rule=_slice, local=local_by_types)
    dialect.op("higher_order.scan_update", traits=[Pure], rule=_update, local=local_by_types)
