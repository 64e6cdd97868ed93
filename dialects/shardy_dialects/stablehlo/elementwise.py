"""Elementwise ops: every dimension passes through; predicates of selects and bounds of clamps may be scalars.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardy_dialects.stablehlo.definitions import define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import (
    ConstantFoldable,
    Dialect,
    Elementwise,
    Maximum,
    Minimum,
    Pure,
    RecursiveMemoryEffects,
    Sum,
    Trait,
    Unpartitioned,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape

ELEMENTWISE_TRAITS = (Pure, Elementwise, ConstantFoldable)

UNARY = (
    "abs",
    "cbrt",
    "ceil",
    "convert",
    "cosine",
    "count_leading_zeros",
    "exponential",
    "exponential_minus_one",
    "floor",
    "imag",
    "is_finite",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "not",
    "popcnt",
    "real",
    "reduce_precision",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tan",
    "tanh",
)

BINARY = (
    "add",
    "and",
    "atan2",
    "compare",
    "complex",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
)

COMBINERS = {"add": (Sum,), "maximum": (Maximum,), "minimum": (Minimum,)}

EXTENDED_UNARY = ("uniform_dequantize", "uniform_quantize")


def bitcast_convert_rule(op: Op) -> OpShardingRule:
    """Pass all dimensions through but the innermost one that only the narrower element type has."""
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(min(in_shape, out_shape, key=len))
    if len(in_shape) < len(out_shape):
        builder.add_factor([None], [len(out_shape) - 1], out_shape[-1], kind=FactorKind.NEED_REPLICATION)
    elif len(in_shape) > len(out_shape):
        builder.add_factor([len(in_shape) - 1], [None], in_shape[-1], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def bitcast_convert_traits(op: Op) -> Iterable[Trait]:
    """Return the elementwise traits where both element types are of one width."""
    if tensor_shape(op.operands[0]) == tensor_shape(op.results[0]):
        return ELEMENTWISE_TRAITS
    return ()


def register(dialect: Dialect) -> None:
    """Define the elementwise ops."""
    for name in (*UNARY, *BINARY, "clamp", "select"):
        traits = (*ELEMENTWISE_TRAITS, *COMBINERS.get(name, ()))
        define(dialect, f"stablehlo.{name}", pointwise_rule, traits=traits)
    for name in EXTENDED_UNARY:
        define(dialect, f"stablehlo.{name}", pointwise_rule, extended=True, traits=ELEMENTWISE_TRAITS)
    define(dialect, "stablehlo.bitcast_convert", bitcast_convert_rule, traits_of=bitcast_convert_traits)
    define(dialect, "stablehlo.map", pointwise_rule, extended=True, traits=(RecursiveMemoryEffects, Unpartitioned))
