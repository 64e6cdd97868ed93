"""Contractions: batching and free dimensions pass through, contracting dimensions are reduced.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import dimension_numbers_of, text_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, shape_of
from shardy_dialects.stablehlo.dot.ragged import free_ragged_dot_rule, ragged_dot_rule
from shardy_py.indexing import op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import Contraction, Pure
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import tensor_shape
from shardy_py.sharding.rules import einsum
from shardy_py.sharding.rules.contraction import contraction_rule

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the contractions."""
    product = FACETS.cost("DotCost")
    definitions.define(
        "stablehlo.dot_general",
        dot_general_rule,
        traits=(Contraction, Pure),
        maps=dot_general_maps,
        body=FACETS.body("dot_general"),
        local=local_by_types,
        cost=product,
    )
    definitions.define(
        "stablehlo.dot",
        dot_rule,
        traits=(Contraction, Pure),
        maps=dot_maps,
        body=FACETS.body("dot"),
        local=local_by_types,
        cost=product,
    )
    definitions.define(
        ("stablehlo.einsum", "stablehlo.unary_einsum"), einsum_rule, extended=True, cost=FACETS.cost("EinsumCost")
    )
    definitions.define("chlo.ragged_dot", free_ragged_dot_rule, extended=True, local=local_by_types)
    definitions.define("mhlo.ragged_dot", ragged_dot_rule)


def dot_general_rule(op: Op) -> OpShardingRule:
    """Give factors to the batching, the free left, the free right and the contracting dimensions, in this order."""
    numbers = dimension_numbers_of(op, "dot_dimension_numbers")
    batching = zip(numbers.dims("lhs_batching_dimensions"), numbers.dims("rhs_batching_dimensions"), strict=True)
    contracting = zip(
        numbers.dims("lhs_contracting_dimensions"), numbers.dims("rhs_contracting_dimensions"), strict=True
    )
    return contraction_rule(op, batching, contracting)


def dot_rule(op: Op) -> OpShardingRule:
    """Return the rule of a product of vectors and matrices."""
    return contraction_rule(op, (), [(len(tensor_shape(op.operands[0])) - 1, 0)])


def einsum_rule(op: Op) -> OpShardingRule | None:
    """Give one factor per letter of the equation, reduced where the result lacks it.

    Equations with an ellipsis or a repeated letter in one tensor have no rule.
    """
    equation = text_of(op, "einsum_config").replace(" ", "")
    terms = equation.replace("->", ",").split(",")
    values = (*op.operands, *op.results)
    ranks = [len(tensor_shape(value)) for value in values]
    if "->" not in equation or "." in equation or [len(term) for term in terms] != ranks:
        return None
    return einsum(op, equation)


def dot_general_maps(op: Op) -> Maps:
    """Read both operands along batch, free and contracted dimensions."""
    numbers = dimension_numbers_of(op, "dot_dimension_numbers")
    dimensions = op_maps.DotDimensions(
        lhs_batch=numbers.dims("lhs_batching_dimensions"),
        rhs_batch=numbers.dims("rhs_batching_dimensions"),
        lhs_contracting=numbers.dims("lhs_contracting_dimensions"),
        rhs_contracting=numbers.dims("rhs_contracting_dimensions"),
    )
    lhs, rhs = (shape_of(value) for value in op.operands)
    return op_maps.dot(shape_of(op.results[0]), lhs, rhs, dimensions)


def dot_maps(op: Op) -> Maps:
    """Read the last dimension of the left operand and the first of the right one together."""
    lhs, rhs = (shape_of(value) for value in op.operands)
    dimensions = op_maps.DotDimensions(
        lhs_batch=(), rhs_batch=(), lhs_contracting=(len(lhs) - 1,), rhs_contracting=(0,)
    )
    return op_maps.dot(shape_of(op.results[0]), lhs, rhs, dimensions)
