"""Branches and loops, and the slices that loops write of their stacked outputs.

A loop has the number of iterations and a condition before its carried values, and a number and the condition as the
first arguments of its body. Stacked outputs are carried, too: they begin as ``onnx.scan_buffer``.
"""

from __future__ import annotations

from shardy_dialects.onnx.tied_dims import Tie, out_shape, tied
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_constant
from shardy_py.plugins import (
    BranchCost,
    BranchDataFlow,
    ConstantLike,
    Dialect,
    IsTerminator,
    LoopDataFlow,
    Pure,
    RecursiveMemoryEffects,
)
from shardy_py.sharding.rule import OpShardingRule

_LOOP = LoopDataFlow(2, 2, 1)
FORMS = {"scan_buffer": local_constant}


def _update(op: Op) -> OpShardingRule:
    """Return the rule of writing a slice of a stacked output, whose first dimension counts the slices."""
    return tied(op, [Tie({0: dim, 1: dim - 1}, {0: dim}) for dim in range(1, len(out_shape(op)))])


def register(onnx: Dialect) -> None:
    """Define the ops."""
    onnx.op("onnx.If", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow(), cost=BranchCost())
    for name in ("Loop", "Scan"):
        onnx.op(f"onnx.{name}", traits=[RecursiveMemoryEffects], data_flow=_LOOP)
    onnx.op("onnx.yield", traits=[IsTerminator, Pure])
    onnx.op("onnx.scan_buffer", traits=[ConstantLike, Pure])
    onnx.op("onnx.scan_update", traits=[Pure], rule=_update)
