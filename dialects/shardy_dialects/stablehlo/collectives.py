"""Collectives: dimensions that change are replicated, with one factor for the operands and one for the results.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CrossDeviceReduction, Dialect, Pure
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape

POINTWISE = ("collective_broadcast", "collective_permute")


def all_gather_rule(op: Op) -> OpShardingRule:
    """Replicate the gathered dimension."""
    return _with_separate_dims(op, (attribute(op, "all_gather_dim", 0),))


def reduce_scatter_rule(op: Op) -> OpShardingRule:
    """Replicate the scattered dimension."""
    return _with_separate_dims(op, (attribute(op, "scatter_dimension", 0),))


def all_to_all_rule(op: Op) -> OpShardingRule:
    """Replicate the split and the concatenated dimension."""
    split, concat = attribute(op, "split_dimension", 0), attribute(op, "concat_dimension", 0)
    return _with_separate_dims(op, (split,) if split == concat else (split, concat))


def _with_separate_dims(op: Op, separate: tuple[int, ...]) -> OpShardingRule:
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(in_shape, where=lambda dim: dim not in separate)
    for dim in separate:
        builder.add_factor_all_operands(dim, in_shape[dim], kind=FactorKind.NEED_REPLICATION)
        builder.add_factor_all_results(dim, out_shape[dim], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the collectives; but for the oldest, they count as having side effects."""
    for name in POINTWISE:
        define(dialect, f"stablehlo.{name}", pointwise_rule, traits=())
    define(dialect, "stablehlo.all_reduce", pointwise_rule, traits=(CrossDeviceReduction,))
    define(dialect, "stablehlo.cross-replica-sum", pointwise_rule, traits=(Pure,))
    define(dialect, "stablehlo.all_gather", all_gather_rule, traits=())
    define(dialect, "stablehlo.all_to_all", all_to_all_rule, traits=())
    define(dialect, "stablehlo.reduce_scatter", reduce_scatter_rule, traits=(CrossDeviceReduction,))
