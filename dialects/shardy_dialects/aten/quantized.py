"""Rules of operators that quantize, and back: elements are free, scales go along the dimension of their channels."""

from __future__ import annotations

from shardy_dialects.aten.arguments import REPLICATED, Rule, attribute, normal, operand_shape, result_shape, tied, whole
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder


def _of_tensor(op: Op) -> Rule:
    """Return the rule of one scale for all elements."""
    return tied(op, [({0: dim}, {0: dim}) for dim in range(len(operand_shape(op, 0)))])


def _of_channels(op: Op) -> Rule:
    """Return the rule of a scale for each element along a dimension."""
    rank = len(operand_shape(op, 0))
    axis = normal(attribute(op, "axis"), rank)
    scales = [number for number in range(1, len(op.operands)) if len(operand_shape(op, number)) == 1]
    return tied(op, [({0: dim, **(dict.fromkeys(scales, 0) if dim == axis else {})}, {0: dim}) for dim in range(rank)])


def _of_rows(op: Op) -> Rule:
    """Return the rule of a scale for each row, whose dimension has the size 1 in scales."""
    shape = operand_shape(op, 0)
    ins = range(len(op.operands))
    rows = [(dict.fromkeys(ins, dim), {0: dim}) for dim in range(len(shape) - 1)]
    return tied(op, [*rows, ({0: len(shape) - 1}, {0: len(shape) - 1})])


def _scales_of_rows(op: Op) -> Rule:
    """Return the rule of finding the scale of each row, which is whole."""
    shape = operand_shape(op, 0)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape[:-1]):
        builder.tie({0: dim}, {n: dim for n in range(len(op.results)) if len(result_shape(op, n)) > dim}, size)
    return builder.tie({0: len(shape) - 1}, {}, shape[-1], kind=REPLICATED).build()


def register(dialect: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _of_tensor: tuple(
            f"{name}_per_tensor.{overload}"
            for name in ("quantize", "dequantize")
            for overload in ("default", "tensor", "tensor2")
        ),
        _of_channels: ("quantize_per_channel.default", "dequantize_per_channel.default"),
        _of_rows: ("quantize_per_token.default", "dequantize_per_token.default"),
        _scales_of_rows: ("choose_qparams_per_token.default", "choose_qparams_per_token_asymmetric.default"),
        whole: ("choose_qparams.tensor", "choose_qparams_symmetric.tensor"),
    }
    for rule, names in by_rule.items():
        for name in names:
            dialect.op(f"quantized_decomposed.{name}", traits=[Pure], rule=rule)
