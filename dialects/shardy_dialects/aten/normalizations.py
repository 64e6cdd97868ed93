"""Rules of normalizations and of windows over images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.aten.arguments import REPLICATED, Rule, attribute, operand_names, operand_shape, result_shape, tied
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Localize, Shard
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import einsum, rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_REDUCED = FactorKind.REDUCTION


def _rows(op: Op) -> Rule:
    """Return the rule of a normalization over the last dimensions: all others are free."""
    names, shape = operand_names(op), operand_shape(op, 0)
    num_normalized = len(attribute(op, "normalized_shape"))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        inner = dim - (len(shape) - num_normalized)
        if inner < 0:
            builder.tie({0: dim}, {n: dim for n in range(len(op.results)) if result_shape(op, n)}, size)
        else:
            ins = {0: dim} | {n: inner for n, name in enumerate(names) if name in ("weight", "bias")}
            outs = {n: dim for n in range(len(op.results)) if result_shape(op, n)[dim : dim + 1] == (size,)}
            builder.tie(ins, outs, size, kind=REPLICATED)
    return builder.build()


def _rows_backward(op: Op) -> Rule:
    """Return the rule of its gradients: those of weight and bias sum up over the free dimensions."""
    names = operand_names(op)
    grad, input_number = names.index("grad_out"), names.index("input")
    shape, num_normalized = operand_shape(op, input_number), len(attribute(op, "normalized_shape"))
    stats = [number for number, name in enumerate(names) if name in ("mean", "rstd")]
    wide = [n for n in range(len(op.results)) if result_shape(op, n) == shape]
    narrow = [n for n in range(len(op.results)) if n not in wide]
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        inner = dim - (len(shape) - num_normalized)
        ins = {grad: dim, input_number: dim}
        if inner < 0:
            # The gradient of the input passes the dimension on, those of weight and bias sum over it: one rule has
            # no word for both.
            kind = FactorKind.PASS_THROUGH if not narrow else REPLICATED if wide else _REDUCED
            builder.tie(ins | dict.fromkeys(stats, dim), dict.fromkeys(wide, dim), size, kind=kind)
        else:
            more = {n: inner for n, name in enumerate(names) if name in ("weight", "bias")}
            builder.tie(ins | more, dict.fromkeys(wide, dim) | dict.fromkeys(narrow, inner), size, kind=REPLICATED)
    return builder.build()


def _channels(op: Op) -> Rule:
    """Return the rule of a batch normalization: channels are free; where it uses the batch, that is whole."""
    names, shape = operand_names(op), operand_shape(op, 0)
    channel = 1 if len(shape) > 1 else 0
    keeps = "no_training" in op.name or "no_update" in op.name
    trains = attribute(op, "training", attribute(op, "train", not keeps))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim == channel:
            ins = {0: dim} | {n: 0 for n in range(1, len(names)) if operand_shape(op, n) == (size,)}
            outs = {0: dim} | {n: 0 for n in range(1, len(op.results)) if result_shape(op, n) == (size,)}
            builder.tie(ins, outs, size)
        else:
            builder.tie({0: dim}, {0: dim}, size, kind=REPLICATED if trains else FactorKind.PASS_THROUGH)
    return builder.build()


def _groups(op: Op) -> Rule:
    """Return the rule of a normalization of groups of channels of each element of the batch."""
    shape = operand_shape(op, 0)
    builder = OpShardingRuleBuilder.for_op(op)
    names = operand_names(op)
    outs = {n: 0 for n in range(len(op.results)) if result_shape(op, n)}
    builder.tie({0: 0}, outs, shape[0])
    for dim in range(1, len(shape)):
        ins = {0: dim} | ({n: 0 for n, name in enumerate(names) if name in ("weight", "bias")} if dim == 1 else {})
        builder.tie(ins, {0: dim}, shape[dim], kind=REPLICATED)
    return builder.build()


def _instances(op: Op) -> Rule:
    """Return the rule of a normalization of each channel of each element: both are free.

    Statistics that it updates sum up over the batch: for these there is no rule.
    """
    names, shape = operand_names(op), operand_shape(op, 0)
    if attribute(op, "use_input_stats", True) and "running_mean" in names:
        return None
    builder = OpShardingRuleBuilder.for_op(op).tie({0: 0}, {0: 0}, shape[0])
    builder.tie({0: 1} | dict.fromkeys(range(1, len(names)), 0), {0: 1}, shape[1])
    for dim in range(2, len(shape)):
        builder.tie({0: dim}, {0: dim}, shape[dim], kind=REPLICATED)
    return builder.build()


def _weight_norm(op: Op) -> Rule:
    """Return the rule of directions of length 1 times lengths: the dimension of the lengths is free.

    A number of -1 says that there is one length for all.
    """
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        if dim == attribute(op, "dim", 0):
            builder.tie({0: dim, 1: dim}, dict.fromkeys(range(len(op.results)), dim), size)
        else:
            builder.tie({0: dim}, {0: dim}, size, kind=REPLICATED)
    return builder.build()


def _window(op: Op) -> Rule:
    """Return the rule of a pooling or an interpolation: leading dimensions are free, the last ones are whole."""
    out = result_shape(op)
    spatial = next(int(char) for char in op.name if char in "123")
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(len(out)):
        sizes = [operand_shape(op, n)[dim] for n in range(len(op.operands)) if len(operand_shape(op, n)) == len(out)]
        ins = {n: dim for n in range(len(op.operands)) if len(operand_shape(op, n)) == len(out)}
        outs = dict.fromkeys(range(len(op.results)), dim)
        free = dim < len(out) - spatial
        sizes += [result_shape(op, n)[dim] for n in outs]
        builder.tie(ins, outs, min(sizes), kind=FactorKind.PASS_THROUGH if free else REPLICATED)
    return builder.build()


def _patches(op: Op) -> Rule:
    """Return the rule of ops between images and the columns of their windows: batch and channels are free."""
    images, columns = operand_shape(op, 0), result_shape(op)
    is_folded = ".col2im" in op.name
    if is_folded:
        images, columns = columns, images
    channel = len(images) - 3
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(channel + 1):
        builder.tie({0: dim}, {0: dim}, images[dim])
    window = columns[channel] // images[channel]
    at = {0: channel}
    builder.tie(at if is_folded else {}, {} if is_folded else at, window, kind=REPLICATED)
    for dim in (channel + 1, channel + 2):
        builder.tie({} if is_folded else {0: dim}, {0: dim} if is_folded else {}, images[dim], kind=REPLICATED)
    last = {0: channel + 1}
    return builder.tie(last if is_folded else {}, {} if is_folded else last, columns[-1], kind=REPLICATED).build()


def _samples(op: Op) -> Rule:
    """Return the rule of looking images up at the places of a grid: batch, channels and places are free."""
    image, out = operand_shape(op, 0), result_shape(op)
    builder = OpShardingRuleBuilder.for_op(op).tie({0: 0, 1: 0}, {0: 0}, image[0]).tie({0: 1}, {0: 1}, image[1])
    for dim in range(2, len(image)):
        builder.tie({0: dim}, {}, image[dim], kind=REPLICATED)
        builder.tie({1: dim - 1}, {0: dim}, out[dim])
    return builder.tie({1: len(image) - 1}, {}, len(image) - 2, kind=REPLICATED).build()


def _batch_and_channels(op: Op) -> Rule:
    """Return the rule of ops over images whose operands all begin with batch and channels; one image has no batch."""
    free = len(operand_shape(op, 0)) - int(next(char for char in op.name if char in "23"))
    outs, ins = range(len(op.results)), range(len(op.operands))
    if any(len(operand_shape(op, number)) <= free for number in ins):
        return None
    return tied(op, [(dict.fromkeys(ins, dim), dict.fromkeys(outs, dim)) for dim in range(free)])


def _grid(op: Op) -> Rule:
    """Return the rule of grids of transforms: the batch is free."""
    return einsum.rule("n ...1 -> n ...2", need_replication="...1 ...2")(op)


def _shuffle(op: Op) -> Rule:
    """Return the rule of moving channels."""
    return rules.along(op, 1)


def _localize_group_norm(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the normalization of the device's part of the batch."""
    shard.check_kinds()
    return shard.copy(N=shard.operands[0].shape[0])


def _localize_grid(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the grid of the device's part of the batch, which is the first size of the result."""
    shard.check_kinds()
    return shard.copy(size=(shard.operands[0].shape[0], *attribute(op, "size")[1:]))


def register(aten: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        _rows: ("layer_norm.default", "native_layer_norm.default", "rms_norm.default", "_fused_rms_norm.default"),
        _channels: (
            *("_native_batch_norm_legit_no_training.default", "_native_batch_norm_legit.default"),
            *("_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_functional.default"),
            *("native_batch_norm.default", "batch_norm.default", "_batch_norm_no_update.default"),
            "_batch_norm_with_update_functional.default",
        ),
        _groups: ("group_norm.default", "native_group_norm.default"),
        _instances: ("instance_norm.default",),
        _weight_norm: ("_weight_norm.default", "_weight_norm_interface.default"),
        _window: (
            *("max_pool1d.default", "max_pool2d.default", "max_pool3d.default", "avg_pool1d.default"),
            *("avg_pool2d.default", "avg_pool3d.default", "max_pool2d_with_indices.default"),
            *("adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default"),
            *("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_max_pool2d.default"),
            *("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec", "upsample_linear1d.vec"),
            *("upsample_nearest1d.default", "upsample_nearest2d.default", "upsample_nearest3d.default"),
            *("upsample_bilinear2d.vec", "upsample_bilinear2d.default", "upsample_bicubic2d.vec"),
            *("upsample_bicubic2d.default", "max_pool2d_with_indices_backward.default"),
            *("avg_pool2d_backward.default", "_adaptive_avg_pool2d_backward.default"),
            *("upsample_linear1d.default", "upsample_trilinear3d.vec", "upsample_trilinear3d.default"),
            *("adaptive_max_pool1d.default", "adaptive_max_pool3d.default", "max_pool3d_with_indices.default"),
            *(
                f"_upsample_{kind}2d_aa.{overload}"
                for kind in ("bilinear", "bicubic")
                for overload in ("vec", "default")
            ),
            "_upsample_lanczos2d_aa.default",
            *(f"_upsample_nearest_exact{rank}d.{overload}" for rank in (1, 2, 3) for overload in ("vec", "default")),
        ),
        _patches: ("im2col.default", "col2im.default"),
        _samples: ("grid_sampler.default", "grid_sampler_2d.default", "grid_sampler_3d.default"),
        _batch_and_channels: (
            "max_unpool2d.default",
            "max_unpool3d.default",
            "fractional_max_pool2d.default",
            "fractional_max_pool3d.default",
        ),
        _grid: ("affine_grid_generator.default",),
        _shuffle: ("channel_shuffle.default",),
    }
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=rule)
    for name in ("native_layer_norm_backward", "_fused_rms_norm_backward"):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_rows_backward)


FORMS: Mapping[str, Localize] = {
    "native_group_norm.default": _localize_group_norm,
    "affine_grid_generator.default": _localize_grid,
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""
