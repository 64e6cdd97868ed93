"""Random number generators: the state is replicated, the numbers may be sharded in any way.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure, Unpartitioned
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def rng_bit_generator_rule(op: Op) -> OpShardingRule:
    """Replicate the state on both sides, give the numbers factors of their own."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.operands[0])):
        builder.add_factor([dim], [dim, None], size, kind=FactorKind.NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(tensor_shape(op.results[1])):
        builder.add_factor([None], [None, dim], size)
    return builder.build()


def rng_rule(op: Op) -> OpShardingRule:
    """Give the numbers factors of their own; the operands are bounds and a shape."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        builder.add_factor([None] * len(op.operands), [dim], size)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the generators."""
    define(dialect, "stablehlo.rng_bit_generator", rng_bit_generator_rule, traits=(Pure, Unpartitioned))
    define(dialect, "stablehlo.rng", rng_rule, extended=True, traits=())
