"""The client ops (CHLO). The reference has no rule for any of them; here most have one as an extended rule."""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import parse_dimension_numbers
from shardy_dialects.stablehlo.custom_calls import top_k_rule
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_dialects.stablehlo.elementwise import ELEMENTWISE_TRAITS
from shardy_dialects.stablehlo.ragged_dot import ragged_dot_rule
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
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import pointwise_rule, tensor_shape
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


def free_ragged_dot_rule(op: Op) -> OpShardingRule | None:
    """Give the rule of a ragged dot whose ragged dimension is a free one of the left side; others have none."""
    numbers = parse_dimension_numbers(str(attribute(op, "ragged_dot_dimension_numbers", "")))
    return ragged_dot_rule(op) if numbers.dims("rhs_group_dimensions") else None


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
    define(dialect, "chlo.ragged_dot", free_ragged_dot_rule, extended=True)
    define(dialect, "chlo.scan", traits=(IsolatedFromAbove, RecursiveMemoryEffects))
