"""Rules of operators that quantize, and back: elements are free, scales go along the dimension of their channels."""

from __future__ import annotations

from shardy_dialects.aten.arguments import REPLICATED, Rule, attribute, normal, operand_shape, result_shape, tied, whole
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder


def _of_tensor(op: Op) -> Rule:
    """Return the rule of one scale for all elements."""
    outs = range(len(op.results))
    return tied(op, [({0: dim}, dict.fromkeys(outs, dim)) for dim in range(len(operand_shape(op, 0)))])


def _of_channels(op: Op) -> Rule:
    """Return the rule of a scale for each element along a dimension."""
    rank = len(operand_shape(op, 0))
    axis = normal(attribute(op, "axis"), rank)
    scales = [number for number in range(1, len(op.operands)) if len(operand_shape(op, number)) == 1]
    outs = range(len(op.results))
    return tied(
        op,
        [
            ({0: dim, **(dict.fromkeys(scales, 0) if dim == axis else {})}, dict.fromkeys(outs, dim))
            for dim in range(rank)
        ],
    )


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


def _gradients_of_channels(op: Op) -> Rule:
    """Return the rule of the gradients of elements and of scales, which are sums over all but their channel."""
    axis = normal(attribute(op, "axis"), len(operand_shape(op, 0)))
    return tied(op, [({0: axis, 1: axis, 2: 0, 3: 0}, {0: axis, 1: 0, 2: 0})])


def _of_groups(op: Op) -> Rule:
    """Return the rule of a scale for each group of neighbours in a row: rows are free."""
    return tied(op, [(dict.fromkeys(range(len(op.operands)), 0), {0: 0})])


def register_aten(aten: Dialect) -> None:
    """Define the ops that quantize and go back at once, as in training."""
    by_rule = {
        _of_tensor: (
            *("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine_cachemask"),
            *(
                "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
                "_fake_quantize_learnable_per_tensor_affine",
            ),
        ),
        _of_channels: (
            *("fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask"),
            "_fake_quantize_learnable_per_channel_affine",
        ),
        whole: (
            *("_fake_quantize_learnable_per_tensor_affine_backward", "_fused_moving_avg_obs_fq_helper_functional"),
        ),
        _gradients_of_channels: ("_fake_quantize_learnable_per_channel_affine_backward",),
    }
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}.default", traits=[Pure], rule=rule)
    aten.op("aten.fake_quantize_per_tensor_affine.tensor_qparams", traits=[Pure], rule=_of_tensor)


def register(dialect: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _of_tensor: tuple(
            f"{name}_per_tensor.{overload}"
            for name in ("quantize", "dequantize")
            for overload in ("default", "tensor", "tensor2")
        ),
        _of_channels: (
            *("quantize_per_channel.default", "dequantize_per_channel.default"),
            "fake_quant_per_channel.default",
        ),
        _of_groups: ("quantize_per_channel_group.default", "dequantize_per_channel_group.default"),
        _of_rows: ("quantize_per_token.default", "dequantize_per_token.default"),
        _scales_of_rows: (
            "choose_qparams_per_token.default",
            "choose_qparams_per_token_asymmetric.default",
            "_choose_qparams_per_token_asymmetric_impl.default",
        ),
        whole: ("choose_qparams.tensor", "choose_qparams_symmetric.tensor"),
    }
    dialect.op("quantized_decomposed.convert_element_type.no_fuse", traits=[Pure], rule=_of_tensor)
    for rule, names in by_rule.items():
        for name in names:
            dialect.op(f"quantized_decomposed.{name}", traits=[Pure], rule=rule)
