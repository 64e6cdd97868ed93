"""Collectives: dimensions that change are replicated, with one factor for the operands and one for the results.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import integer_of
from shardy_dialects.stablehlo.collectives.mesh_axes import ReplicaGroupMesh
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, RuleFunction
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CrossDeviceReduction, Trait
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the collectives; but for the oldest, they count as having side effects."""
    mesh = ReplicaGroupMesh()

    def define(kind: str, rule: RuleFunction, *traits: Trait, mesh_reference: ReplicaGroupMesh | None = mesh) -> None:
        cost = FACETS.cost("CollectiveCost", kind)
        definitions.define(f"stablehlo.{kind}", rule, traits=traits, mesh_reference=mesh_reference, cost=cost)

    define("collective_broadcast", pointwise_rule)
    define("collective_permute", pointwise_rule, mesh_reference=None)
    define("all_reduce", pointwise_rule, CrossDeviceReduction)
    define("all_gather", all_gather_rule)
    define("all_to_all", all_to_all_rule)
    define("reduce_scatter", reduce_scatter_rule, CrossDeviceReduction)
    definitions.define("stablehlo.cross-replica-sum", pointwise_rule)


POINTWISE = ("collective_broadcast", "collective_permute")


def all_gather_rule(op: Op) -> OpShardingRule:
    """Replicate the gathered dimension."""
    return _with_separate_dims(op, (integer_of(op, "all_gather_dim"),))


def reduce_scatter_rule(op: Op) -> OpShardingRule:
    """Replicate the scattered dimension."""
    return _with_separate_dims(op, (integer_of(op, "scatter_dimension"),))


def all_to_all_rule(op: Op) -> OpShardingRule:
    """Replicate the split and the concatenated dimension."""
    split, concat = integer_of(op, "split_dimension"), integer_of(op, "concat_dimension")
    return _with_separate_dims(op, (split,) if split == concat else (split, concat))


def _with_separate_dims(op: Op, separate: tuple[int, ...]) -> OpShardingRule:
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(in_shape, where=lambda dim: dim not in separate)
    for dim in separate:
        builder.add_factor_all_operands(dim, in_shape[dim], kind=FactorKind.NEED_REPLICATION)
        builder.add_factor_all_results(dim, out_shape[dim], kind=FactorKind.NEED_REPLICATION)
    return builder.build()
