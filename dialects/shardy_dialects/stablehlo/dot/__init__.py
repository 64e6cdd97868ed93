"""Contractions: batching and free dimensions pass through, contracting dimensions are reduced.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import dimension_numbers_of, text_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, shape_of
from shardy_py.indexing import op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import Contraction, Pure
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules.contraction import contraction_rule

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the contractions."""
    einsum, product = FACETS.cost("EinsumCost"), FACETS.cost("DotCost")
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
    definitions.define(("stablehlo.einsum", "stablehlo.unary_einsum"), einsum_rule, extended=True, cost=einsum)
    definitions.define("chlo.ragged_dot", ragged_dot_rule, extended=True, local=local_by_types)


def dot_general_rule(op: Op) -> OpShardingRule:
    """Give factors to the batching, the free left, the free right and the contracting dimensions, in this order."""
    numbers = dimension_numbers_of(op, "dot_dimension_numbers")
    batching = zip(numbers.dims("lhs_batching_dimensions"), numbers.dims("rhs_batching_dimensions"), strict=True)
    contracting = zip(
        numbers.dims("lhs_contracting_dimensions"), numbers.dims("rhs_contracting_dimensions"), strict=True
    )
    return contraction_rule(op, batching, contracting)


def dot_rule(op: Op) -> OpShardingRule:
    """Give the rule of a product of vectors and matrices."""
    return contraction_rule(op, (), [(len(tensor_shape(op.operands[0])) - 1, 0)])


def einsum_rule(op: Op) -> OpShardingRule | None:
    """Give one factor per letter of the equation, reduced where the result lacks it.

    Equations with an ellipsis or a repeated letter in one tensor have no rule.
    """
    inputs, arrow, output = text_of(op, "einsum_config").replace(" ", "").partition("->")
    subscripts = [*inputs.split(","), output]
    values = [*op.operands, *op.results]
    if not arrow or len(subscripts) != len(values):
        return None
    if any(len(set(text)) != len(tensor_shape(value)) for text, value in zip(subscripts, values, strict=True)):
        return None
    sizes: dict[str, int] = {}
    for text, value in zip(subscripts, values, strict=True):
        for letter, size in zip(text, tensor_shape(value), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    builder = OpShardingRuleBuilder.for_op(op)
    for letter, size in sizes.items():
        dims = [
            text.index(letter) if letter in text and tensor_shape(value)[text.index(letter)] == size else None
            for text, value in zip(subscripts, values, strict=True)
        ]
        kind = FactorKind.PASS_THROUGH if letter in output else FactorKind.REDUCTION
        builder.add_factor(dims[:-1], dims[-1:], size, kind=kind)
    return builder.build()


def ragged_dot_rule(op: Op) -> OpShardingRule | None:
    """Give the rule of a product of each group of rows of the left side with the right side's matrix of the group.

    Only this mode, in which the ragged dimension is a free one of the left side, has a rule: where a group begins
    depends on the data, so that the ragged and the group dimension are replicated.
    """
    numbers = dimension_numbers_of(op, "ragged_dot_dimension_numbers")
    batching = list(zip(numbers.dims("lhs_batching_dimensions"), numbers.dims("rhs_batching_dimensions"), strict=True))
    contracting = list(
        zip(numbers.dims("lhs_contracting_dimensions"), numbers.dims("rhs_contracting_dimensions"), strict=True)
    )
    ragged, groups = numbers.dims("lhs_ragged_dimensions"), numbers.dims("rhs_group_dimensions")
    if len(ragged) != 1 or len(groups) != 1:
        return None
    lhs, rhs, sizes = (tensor_shape(value) for value in op.operands)
    lhs_free = _others(lhs, [pair[0] for pair in batching + contracting])
    rhs_free = _others(rhs, [*(pair[1] for pair in batching + contracting), *groups])
    builder = OpShardingRuleBuilder.for_op(op)
    for out_dim, (lhs_dim, rhs_dim) in enumerate(batching):
        sizes_dim = out_dim if len(sizes) == len(batching) + 1 else None
        builder.add_factor([lhs_dim, rhs_dim, sizes_dim], [out_dim], lhs[lhs_dim])
    for position, dim in enumerate(lhs_free):
        kind = FactorKind.NEED_REPLICATION if dim in ragged else FactorKind.PASS_THROUGH
        builder.add_factor([dim, None, None], [len(batching) + position], lhs[dim], kind=kind)
    for position, dim in enumerate(rhs_free):
        builder.add_factor([None, dim, None], [len(batching) + len(lhs_free) + position], rhs[dim])
    for lhs_dim, rhs_dim in contracting:
        builder.add_factor([lhs_dim, rhs_dim, None], [None], lhs[lhs_dim], kind=FactorKind.REDUCTION)
    builder.add_factor([None, groups[0], len(sizes) - 1], [None], rhs[groups[0]], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def _others(shape: tuple[int, ...], dims: list[int]) -> list[int]:
    return [dim for dim in range(len(shape)) if dim not in dims]


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
