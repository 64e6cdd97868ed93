"""Ops that put elements elsewhere without changing their number: reshape, transpose and reverse.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ConstantFoldable, Dialect, PassThrough, Pure, Reshape
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules.reshape import reshape_rule
from shardy_py.sharding.rules.reshape import transpose_rule as transposition


def transpose_rule(op: Op) -> OpShardingRule:
    """Tie each result dimension to the operand dimension it comes from."""
    return transposition(op, attribute(op, "permutation", ()))


def reverse_rule(op: Op) -> OpShardingRule:
    """Permute along the reversed dimensions, pass the others through."""
    reversed_dims = attribute(op, "dimensions", ())
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        tensor_shape(op.results[0]),
        kind=lambda dim: FactorKind.PERMUTATION if dim in reversed_dims else FactorKind.PASS_THROUGH,
    )
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the rearranging ops."""
    define(dialect, "stablehlo.reshape", reshape_rule, traits=(Pure, PassThrough, ConstantFoldable, Reshape))
    define(dialect, "stablehlo.dynamic_reshape", reshape_rule, extended=True)
    define(dialect, "stablehlo.transpose", transpose_rule, traits=(Pure, PassThrough))
    define(dialect, "stablehlo.reverse", reverse_rule)
