"""Decompositions of matrices, the last two dimensions; all dimensions before are batch dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import case_of, flag_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import LibraryCall, Pure
from shardy_py.sharding import einsum
from shardy_py.sharding.rule import OpShardingRule

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the decompositions."""
    traits = (Pure, LibraryCall)
    definitions.define(
        "stablehlo.cholesky", cholesky_rule, traits=traits, local=local_by_types, cost=FACETS.cost("CholeskyCost")
    )
    definitions.define(
        "stablehlo.triangular_solve",
        triangular_solve_rule,
        traits=traits,
        local=local_by_types,
        cost=FACETS.cost("TriangularSolveCost"),
    )


def cholesky_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices, pass the batch through."""
    return einsum.rule("... m n -> ... m n", need_replication="m n")(op)


def triangular_solve_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices of ``op(a) @ x = b`` or ``x @ op(a) = b``, pass the batch through.

    The factor ``b`` is the dimension of the matrix that b has, too, and ``x`` the one that x has; ``o`` is the other
    dimension of b and x.
    """
    is_left = flag_of(op, "left_side")
    is_transposed = case_of(op, "transpose_a", "NO_TRANSPOSE") in ("TRANSPOSE", "ADJOINT")
    matrix = "b x" if is_left != is_transposed else "x b"
    sides = "... b o -> ... x o" if is_left else "... o b -> ... o x"
    order = "... b o x" if is_left else "... o b x"
    return einsum.rule(f"... {matrix}, {sides}", need_replication="b o x", order=order)(op)
