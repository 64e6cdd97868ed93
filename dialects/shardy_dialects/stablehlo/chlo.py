"""The client ops (CHLO). The reference has no rule for any of them; here most have one as an extended rule."""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.custom_calls import top_k_rule
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_dialects.stablehlo.elementwise import ELEMENTWISE_TRAITS
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import (
    ConstantLike,
    Dialect,
    FoldsIntoConstant,
    IsolatedFromAbove,
    Pure,
    RecursiveMemoryEffects,
    UnitedByMlir,
    Unpartitioned,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape
from shardy_py.sharding.rules.pointwise import aligned_rule

UNARY = (
    "_asin_acos_kernel",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bessel_i1e",
    "conj",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_inf",
    "is_neg_inf",
    "is_pos_inf",
    "lgamma",
    "sinh",
    "square",
    "tan",
)

# The dialect does not mark these as elementwise, so that the schedule does not prefer them.
BINARY = ("mulhi", "next_after", "polygamma", "zeta")

BROADCASTING = (
    "add",
    "and",
    "atan2",
    "compare",
    "complex",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "next_after",
    "or",
    "polygamma",
    "power",
    "remainder",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
    "zeta",
)


def broadcasting_rule(op: Op) -> OpShardingRule:
    """Align the operands with the last dimensions of the result, or as ``broadcast_dimensions`` says.

    Expanded dimensions of size 1 do not take part in the factor of the result's dimension.
    """
    out_shape = tensor_shape(op.results[0])
    return aligned_rule(op, [_aligned_dims(op, tensor_shape(value), out_shape) for value in op.operands])


def ragged_dot_rule(op: Op) -> OpShardingRule | None:
    """Give the rule of a product of each group of rows of the left side with the right side's matrix of the group.

    Only this mode, in which the ragged dimension is a free one of the left side, has a rule: where a group begins
    depends on the data, so that the ragged and the group dimension are replicated.
    """
    numbers = parse_dimension_numbers(str(attribute(op, "ragged_dot_dimension_numbers", "")))
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


def _aligned_dims(op: Op, shape: tuple[int, ...], out_shape: tuple[int, ...]) -> dict[int, int]:
    """Return result dimension to operand dimension, where their sizes are equal."""
    shift = len(out_shape) - len(shape)
    targets = tuple(range(shift, len(out_shape)))
    if shift:
        targets = attribute(op, "broadcast_dimensions") or targets
    return {target: dim for dim, target in enumerate(targets) if shape[dim] == out_shape[target]}


def register(dialect: Dialect) -> None:
    """Define the ops of CHLO."""
    for name in UNARY:
        define(dialect, f"chlo.{name}", pointwise_rule, extended=True, traits=ELEMENTWISE_TRAITS)
    folds = FoldsIntoConstant("FoldsIntoConstant", "chlo.constant", "value")
    define(dialect, "chlo.constant_like", pointwise_rule, extended=True, traits=(*ELEMENTWISE_TRAITS, folds))
    for name in BINARY:
        define(dialect, f"chlo.{name}", pointwise_rule, extended=True)
    for name in BROADCASTING:
        define(dialect, f"chlo.broadcast_{name}", broadcasting_rule, extended=True, traits=ELEMENTWISE_TRAITS)
    define(dialect, "chlo.top_k", top_k_rule, extended=True, traits=(Pure, Unpartitioned))
    define(dialect, "chlo.constant", traits=(Pure, ConstantLike, UnitedByMlir))
    define(dialect, "chlo.ragged_dot", ragged_dot_rule, extended=True)
    define(dialect, "chlo.scan", traits=(IsolatedFromAbove, RecursiveMemoryEffects))
