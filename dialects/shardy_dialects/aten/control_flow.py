"""Control flow: branches, loops, and scans that carry their stacked outputs."""

from __future__ import annotations

from shardy_dialects.aten.arguments import Rule
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
from shardy_py.sharding import einsum


def _slice(op: Op) -> Rule:
    """Return the rule of taking one round's slice: the dimension of the rounds is whole."""
    return einsum.rule("r ... -> ...", need_replication="r")(op)


def _update(op: Op) -> Rule:
    """Return the rule of putting one round's slice into the stacked output."""
    return einsum.rule("r ..., ... -> r ...", need_replication="r")(op)


def register(dialect: Dialect) -> None:
    """Define the ops."""
    dialect.op("higher_order.cond", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow())
    dialect.op("higher_order.while_loop", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow(yielding=(1,)))
    dialect.op("higher_order.scan", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow())
    dialect.op("higher_order.yield", traits=[IsTerminator, Pure])
    dialect.op("higher_order.scan_buffer", traits=[ConstantLike, Pure], local=local_constant)
    dialect.op("higher_order.scan_slice", traits=[Pure], rule=_slice, local=local_by_types)
    dialect.op("higher_order.scan_update", traits=[Pure], rule=_update, local=local_by_types)
