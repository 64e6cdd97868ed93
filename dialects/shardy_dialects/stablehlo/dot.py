"""Contractions: batching and free dimensions pass through, contracting dimensions are reduced.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules.contraction import contraction_rule


def dot_general_rule(op: Op) -> OpShardingRule:
    """Give factors to the batching, the free left, the free right and the contracting dimensions, in this order."""
    numbers = parse_dimension_numbers(str(attribute(op, "dot_dimension_numbers", "")))
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
    inputs, arrow, output = str(attribute(op, "einsum_config", "")).replace(" ", "").partition("->")
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


def register(dialect: Dialect) -> None:
    """Define the contractions."""
    define(dialect, "stablehlo.dot_general", dot_general_rule, traits=[Contraction, Pure])
    define(dialect, "stablehlo.dot", dot_rule, traits=[Contraction, Pure])
    define(dialect, ("stablehlo.einsum", "stablehlo.unary_einsum"), einsum_rule, extended=True)
