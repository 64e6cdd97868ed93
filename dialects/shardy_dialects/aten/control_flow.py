"""Control flow: branches, loops, and scans that carry their stacked outputs."""

from __future__ import annotations

from typing import Any

from shardy_dialects.aten.arguments import REPLICATED, Factors, operand_shape
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


def _slice(op: Op) -> Any:
    """Return the rule of taking one round's slice: the dimension of the rounds is whole."""
    shape = operand_shape(op, 0)
    factors = Factors(op).add(shape[0], {0: 0}, {}, kind=REPLICATED)
    for dim, size in enumerate(shape[1:]):
        factors.add(size, {0: dim + 1}, {0: dim})
    return factors.build()


def _update(op: Op) -> Any:
    """Return the rule of putting one round's slice into the stacked output."""
    shape = operand_shape(op, 0)
    factors = Factors(op).add(shape[0], {0: 0}, {0: 0}, kind=REPLICATED)
    for dim, size in enumerate(shape[1:]):
        factors.add(size, {0: dim + 1, 1: dim}, {0: dim + 1})
    return factors.build()


def register(dialect: Dialect) -> None:
    """Define the ops."""
    dialect.op("higher_order.cond", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow())
    dialect.op("higher_order.while_loop", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow(yielding=(1,)))
    dialect.op("higher_order.scan", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow())
    dialect.op("higher_order.yield", traits=[IsTerminator, Pure])
    dialect.op("higher_order.scan_buffer", traits=[ConstantLike, Pure], local=local_constant)
    dialect.op("higher_order.scan_slice", traits=[Pure], rule=_slice, local=local_by_types)
    dialect.op("higher_order.scan_update", traits=[Pure], rule=_update, local=local_by_types)
