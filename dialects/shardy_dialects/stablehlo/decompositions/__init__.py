"""Decompositions of matrices, the last two dimensions; all dimensions before are batch dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import case_of, flag_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the decompositions."""
    definitions.define("stablehlo.cholesky", cholesky_rule, local=local_by_types, cost=FACETS.cost("CholeskyCost"))
    definitions.define(
        "stablehlo.triangular_solve",
        triangular_solve_rule,
        local=local_by_types,
        cost=FACETS.cost("TriangularSolveCost"),
    )


def cholesky_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices, pass the batch through."""
    shape = tensor_shape(op.operands[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        shape, kind=lambda dim: FactorKind.PASS_THROUGH if dim < len(shape) - 2 else FactorKind.NEED_REPLICATION
    )
    return builder.build()


def triangular_solve_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices of ``op(a) @ x = b`` or ``x @ op(a) = b``, pass the batch through."""
    a_shape, b_shape = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    rows, columns = len(a_shape) - 2, len(a_shape) - 1
    is_left = flag_of(op, "left_side")
    is_transposed = case_of(op, "transpose_a", "NO_TRANSPOSE") in ("TRANSPOSE", "ADJOINT")
    free, contracting = (rows, columns) if is_left != is_transposed else (columns, rows)
    # The dimension of b that a has, too, and the one that only b and x have.
    shared, own = (rows, columns) if is_left else (columns, rows)
    builder = OpShardingRuleBuilder.for_op(op).add_pointwise(a_shape[:-2])

    def add_free_factor() -> None:
        builder.add_factor([free, shared], [None], a_shape[free], kind=FactorKind.NEED_REPLICATION)

    def add_own_factor() -> None:
        builder.add_factor([None, own], [own], b_shape[own], kind=FactorKind.NEED_REPLICATION)

    for add in (add_free_factor, add_own_factor) if is_left else (add_own_factor, add_free_factor):
        add()
    builder.add_factor([contracting, None], [shared], a_shape[contracting], kind=FactorKind.NEED_REPLICATION)
    return builder.build()
