"""Sorting along one dimension.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, RecursiveMemoryEffects, Sort
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def sort_rule(op: Op) -> OpShardingRule:
    """Replicate the sorted dimension; nothing propagates along it if no other dimension could be sharded."""
    shape = tensor_shape(op.operands[0])
    dimension = attribute(op, "dimension", -1)
    is_blocked = all(dim == dimension or size == 1 for dim, size in enumerate(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim == dimension:
            builder.add_factor_all(dim, size, kind=FactorKind.NEED_REPLICATION, blocked=is_blocked)
        else:
            builder.add_factor_all(dim, size)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define sort."""
    define(dialect, "stablehlo.sort", sort_rule, traits=(RecursiveMemoryEffects, Sort))
