"""Rules of nodes that compute each element by itself, and of quantization."""

from __future__ import annotations

from shardy_dialects.onnx.tied_dims import attribute, normal, operand_at, passing, shape_of
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import OpShardingRule

NAMES = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos"),
    *("Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN"),
    *("LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Dropout"),
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu", "Max", "Min", "Mean", "Sum"),
    "Where",
)
"""Nodes whose operands broadcast to their results as in numpy."""


def _cast_like(op: Op) -> OpShardingRule:
    """Return the rule of a cast to the type of another tensor, which has no part."""
    return passing(op, range(len(shape_of(op))))


def quantized(op: Op) -> OpShardingRule:
    """Return the rule of quantization: scales and zero points are scalars, or vectors along an axis."""
    rank = len(shape_of(op))
    axis = normal(attribute(op, "axis", 1), rank)
    vectors = {
        number: 0
        for number in range(1, len(op.operands))
        if axis < rank and len(shape_of(op, number)) == 1 and shape_of(op, number)[0] == shape_of(op)[axis]
    }
    blocked = any(len(shape_of(op, number)) > 1 for number in range(1, len(op.operands)))
    dims = [dim for dim in range(rank) if not blocked or dim != axis]
    return passing(op, dims, {axis: vectors})


def _dynamically_quantized(op: Op) -> OpShardingRule:
    """Return the rule of a quantization whose scale follows from all elements."""
    return passing(op, ())


def _rotary(op: Op) -> OpShardingRule:
    """Return the rule of rotary embeddings: sequences, and heads where they have a dimension."""
    positions = operand_at(op, 3)
    batches = {positions: 0} if positions > 0 else {1: 0, 2: 0}
    return passing(op, (0, 1) if len(shape_of(op)) == 4 else (0,), {0: batches})


def register(onnx: Dialect) -> None:
    """Define the ops."""
    for name in NAMES:
        onnx.op(f"onnx.{name}", traits=[Pure], rule=rules.broadcast)
    onnx.op("onnx.CastLike", traits=[Pure], rule=_cast_like)
    for name in ("QuantizeLinear", "DequantizeLinear"):
        onnx.op(f"onnx.{name}", traits=[Pure], rule=quantized)
    onnx.op("onnx.DynamicQuantizeLinear", traits=[Pure], rule=_dynamically_quantized)
    onnx.op("onnx.RotaryEmbedding", traits=[Pure], rule=_rotary)
