"""Broadcasts: dimensions of the operand keep their factor, new and expanded dimensions have their own.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Broadcast, ConstantFoldable, Dialect, Pure
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import tensor_shape
from shardy_py.sharding.rules.pointwise import expanded_rule


def broadcast_in_dim_rule(op: Op) -> OpShardingRule:
    """Tie each operand dimension to its result dimension unless its size 1 is expanded."""
    return _broadcast(op, attribute(op, "broadcast_dimensions", ()))


def broadcast_rule(op: Op) -> OpShardingRule:
    """Tie the operand to the last dimensions of the result."""
    rank, out_rank = len(tensor_shape(op.operands[0])), len(tensor_shape(op.results[0]))
    return _broadcast(op, tuple(range(out_rank - rank, out_rank)))


def _broadcast(op: Op, dimensions: tuple[int, ...]) -> OpShardingRule:
    return expanded_rule(op, {out_dim: in_dim for in_dim, out_dim in enumerate(dimensions)})


def register(dialect: Dialect) -> None:
    """Define the broadcasts."""
    define(dialect, "stablehlo.broadcast_in_dim", broadcast_in_dim_rule, traits=(Pure, Broadcast, ConstantFoldable))
    define(dialect, "stablehlo.broadcast", broadcast_rule, extended=True)
    define(dialect, "stablehlo.dynamic_broadcast_in_dim", broadcast_in_dim_rule, extended=True)
