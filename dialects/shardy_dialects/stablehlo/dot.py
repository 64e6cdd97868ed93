"""Contractions: batching and free dimensions pass through, contracting dimensions are reduced."""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph import Op
from shardy_py.plugins import Contraction, Dialect, Pure
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def dot_general_rule(op: Op) -> OpShardingRule:
    """Give factors to the batching, the free left, the free right and the contracting dimensions, in this order."""
    numbers = parse_dimension_numbers(str(attribute(op, "dot_dimension_numbers", "")))
    lhs_batching, rhs_batching = numbers.dims("lhs_batching_dimensions"), numbers.dims("rhs_batching_dimensions")
    lhs_contracting = numbers.dims("lhs_contracting_dimensions")
    rhs_contracting = numbers.dims("rhs_contracting_dimensions")
    lhs, rhs = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    builder = OpShardingRuleBuilder.for_op(op)
    out_dim = 0
    for lhs_dim, rhs_dim in zip(lhs_batching, rhs_batching, strict=True):
        builder.add_factor([lhs_dim, rhs_dim], [out_dim], lhs[lhs_dim])
        out_dim += 1
    for dim, size in enumerate(lhs):
        if dim not in lhs_contracting and dim not in lhs_batching:
            builder.add_factor([dim, None], [out_dim], size)
            out_dim += 1
    for dim, size in enumerate(rhs):
        if dim not in rhs_contracting and dim not in rhs_batching:
            builder.add_factor([None, dim], [out_dim], size)
            out_dim += 1
    for lhs_dim, rhs_dim in zip(lhs_contracting, rhs_contracting, strict=True):
        builder.add_factor([lhs_dim, rhs_dim], [None], lhs[lhs_dim], kind=FactorKind.REDUCTION)
    return builder.build()


def dot_rule(op: Op) -> OpShardingRule:
    """Give the rule of a product of vectors and matrices."""
    lhs, rhs = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    builder = OpShardingRuleBuilder.for_op(op)
    if len(lhs) == 2:
        builder.add_factor([0, None], [0], lhs[0])
    if len(rhs) == 2:
        builder.add_factor([None, 1], [len(lhs) - 1], rhs[1])
    builder.add_factor([len(lhs) - 1, 0], [None], rhs[0], kind=FactorKind.REDUCTION)
    return builder.build()


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
