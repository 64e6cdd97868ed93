"""Rules of reductions, normalizations, and nodes that look at all of a dimension."""

from __future__ import annotations

from collections.abc import Callable

from shardy_dialects.onnx.tied_dims import Tie, attribute, normal, operand_at, out_shape, passing, shape_of, tied
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule

_COMBINERS = {
    "ReduceSum": Combiner.ADD,
    "ReduceL1": Combiner.ADD,
    "ReduceSumSquare": Combiner.ADD,
    "ReduceProd": Combiner.MUL,
    "ReduceMax": Combiner.MAX,
    "ReduceMin": Combiner.MIN,
}
_WHOLE = ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
"""Reductions whose parts cannot be combined by one operation."""
_EVERY_OPSET = 13
"""The first version of the operators in which softmax is over one axis only."""


def reduction(combiner: Combiner | None) -> Callable[[Op], OpShardingRule]:
    """Return the rule function of a reduction.

    Args:
        combiner: How parts combine; None where the reduced dimensions must be whole.
    """

    def rule(op: Op) -> OpShardingRule:
        rank = len(shape_of(op))
        axes = attribute(op, "axes")
        if not axes:
            axes = () if attribute(op, "noop_with_empty_axes", 0) else range(rank)
        reduced = {normal(axis, rank) for axis in axes}
        stays, ties, out = bool(attribute(op, "keepdims", 1)), [], 0
        for dim in range(rank):
            if dim not in reduced:
                ties.append(Tie({0: dim}, {0: out}))
            elif combiner is not None:
                ties.append(Tie({0: dim}, {}, combiner))
            out += stays or dim not in reduced
        return tied(op, ties)

    return rule


def _selection(op: Op) -> OpShardingRule:
    """Return the rule of the index of the largest or the smallest element along an axis."""
    rank, stays = len(shape_of(op)), bool(attribute(op, "keepdims", 1))
    axis = normal(attribute(op, "axis", 0), rank)
    return tied(op, [Tie({0: dim}, {0: dim if stays or dim < axis else dim - 1}) for dim in range(rank) if dim != axis])


def _along_axis(default: int) -> Callable[[Op], OpShardingRule]:
    """Return the rule of a node that needs all of one axis, and leaves the others alone."""

    def rule(op: Op) -> OpShardingRule:
        rank = len(shape_of(op))
        axis = normal(attribute(op, "axis", default), rank)
        return passing(op, [dim for dim in range(rank) if dim != axis])

    return rule


def _softmax(op: Op) -> OpShardingRule:
    """Return the rule of a softmax; before version 13 it is over all dimensions from the axis on."""
    rank = len(shape_of(op))
    if attribute(op, "opset", _EVERY_OPSET) >= _EVERY_OPSET:
        return _along_axis(-1)(op)
    return passing(op, range(normal(attribute(op, "axis", 1), rank)))


def _batch_normalization(op: Op) -> OpShardingRule:
    """Return the rule of a normalization by numbers per channel; that of training needs whole channels."""
    channels = dict.fromkeys(range(1, 5), 0)
    if len(op.results) > 1:
        dims = {0: 1, **dict.fromkeys(range(1, len(op.results)), 0)}
        return tied(op, [Tie({0: 1, **channels}, dims)])
    return passing(op, range(len(shape_of(op))), {1: channels})


def _instance_normalization(op: Op) -> OpShardingRule:
    return passing(op, (0, 1), {1: {1: 0, 2: 0}})


def _of_each_batch(op: Op) -> OpShardingRule:
    return passing(op, (0,))


def _of_images_and_channels(op: Op) -> OpShardingRule:
    return passing(op, (0, 1))


def layer_normalization(op: Op) -> OpShardingRule:
    """Return the rule of a normalization over the last dimensions, from an axis on."""
    rank = len(shape_of(op))
    return passing(op, range(normal(attribute(op, "axis", -1), rank)))


def _mean_variance(op: Op) -> OpShardingRule:
    rank = len(shape_of(op))
    axes = {normal(axis, rank) for axis in attribute(op, "axes", (0, 2, 3))}
    return passing(op, [dim for dim in range(rank) if dim not in axes])


def _max_pool(op: Op) -> OpShardingRule:
    """Return the rule of pooling; indices count elements of the whole tensor, which no device has."""
    return passing(op, () if len(op.results) > 1 else (0, 1))


def _reverse_sequence(op: Op) -> OpShardingRule:
    batch, time = attribute(op, "batch_axis", 1), attribute(op, "time_axis", 0)
    return passing(op, [dim for dim in range(len(shape_of(op))) if dim != time], {batch: {1: 0}})


def of_matrices(op: Op) -> OpShardingRule:
    """Return the rule of a node that treats each matrix by itself."""
    return passing(op, range(len(shape_of(op)) - 2))


def _grid_sample(op: Op) -> OpShardingRule:
    """Return the rule of samples of images: batches, channels, and the points of the grid."""
    points = [Tie({1: dim - 1}, {0: dim}) for dim in range(2, len(out_shape(op)))]
    return tied(op, [Tie({0: 0, 1: 0}, {0: 0}), Tie({0: 1}, {0: 1}), *points])


def _roi_align(op: Op) -> OpShardingRule:
    regions = {number: 0 for position in (1, 2) if (number := operand_at(op, position)) >= 0}
    return tied(op, [Tie(regions, {0: 0}), Tie({0: 1}, {0: 1})])


def _local_response(op: Op) -> OpShardingRule:
    return passing(op, [dim for dim in range(len(shape_of(op))) if dim != 1])


def register(onnx: Dialect) -> None:
    """Define the ops."""
    table: dict[str, Callable[[Op], OpShardingRule]] = {
        **{name: reduction(combiner) for name, combiner in _COMBINERS.items()},
        **dict.fromkeys(_WHOLE, reduction(None)),
        **dict.fromkeys(("ArgMax", "ArgMin"), _selection),
        **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
        **dict.fromkeys(("LpNormalization", "TopK"), _along_axis(-1)),
        **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_normalization),
        **dict.fromkeys(("AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"), _of_images_and_channels),
        "GlobalLpPool": _of_images_and_channels,
        "MaxPool": _max_pool,
        "MaxUnpool": _of_each_batch,
        "BatchNormalization": _batch_normalization,
        "InstanceNormalization": _instance_normalization,
        "GroupNormalization": _of_each_batch,
        "MeanVarianceNormalization": _mean_variance,
        "LRN": _local_response,
        "CumSum": _along_axis(0),
        "Trilu": of_matrices,
        "ReverseSequence": _reverse_sequence,
        "GridSample": _grid_sample,
        "RoiAlign": _roi_align,
    }
    for name, rule in table.items():
        onnx.op(f"onnx.{name}", traits=[Pure], rule=rule)
