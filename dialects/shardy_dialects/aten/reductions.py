"""Rules of reductions, of ops that need whole rows, and of losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from shardy_dialects.aten.arguments import (
    REPLICATED,
    Rule,
    RuleFunction,
    aligned,
    attribute,
    broadcast,
    normal,
    normal_dims,
    operand_number,
    operand_shape,
    result_shape,
    tied,
    whole,
)
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Localize, Shard, no_local_form
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder

_COMBINERS = {
    "add": (
        *("sum.default", "sum.dim_IntList", "nansum.default", "count_nonzero.default", "count_nonzero.dim_IntList"),
        "linalg__powsum.default",
    ),
    "max": ("amax.default", "max.default", "any.default", "any.dim", "any.dims"),
    "min": ("amin.default", "min.default", "all.default", "all.dim", "all.dims"),
    "mul": ("prod.default", "prod.dim_int"),
    "not": (
        *("mean.default", "mean.dim", "var.default", "var.dim", "var.correction", "std.default", "std.dim"),
        *("std.correction", "var_mean.correction", "var_mean.dim", "std_mean.correction", "max.dim", "min.dim"),
        *("argmax.default", "argmin.default", "median.default", "median.dim", "logsumexp.default", "mode.default"),
        *("linalg_vector_norm.default", "norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype"),
        *("norm.ScalarOpt_dim_dtype", "kthvalue.default", "aminmax.default"),
        *("_aminmax.default", "_aminmax.dim"),
        *("std_mean.default", "std_mean.dim", "var_mean.default", "nanmean.default", "nanmedian.default"),
        *("nanmedian.dim", "linalg_norm.default", "linalg_matrix_norm.default", "linalg_matrix_norm.str_ord"),
    ),
}


_ROWS = (
    *("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default", "_safe_softmax.default"),
    *("cumsum.default", "cumprod.default", "cummax.default", "cummin.default", "logcumsumexp.default"),
    "_logcumsumexp.default",
    *("_softmax_backward_data.default", "_log_softmax_backward_data.default", "sort.default", "argsort.default"),
    *("sort.stable", "argsort.stable", "glu.default"),
)


_WHOLE = (
    *("histogram.bin_ct", "histogram.bins_tensor", "_histogramdd_from_bin_cts.default"),
    *("_histogramdd_from_bin_tensors.default", "_histogramdd_bin_edges.default", "hash_tensor.default"),
    *("_ctc_loss.default", "_ctc_loss.Tensor", "_ctc_loss_backward.default", "_ctc_loss_backward.Tensor"),
    *("multilabel_margin_loss_forward.default", "_segment_reduce_backward.default", "_amp_update_scale.default"),
)


_TOP = ("topk.default",)
_CLASS_LOSSES = ("nll_loss.default", "nll_loss_nd.default", "nll_loss_forward.default", "nll_loss2d_forward.default")
_LOSSES_OF_PADDING = (
    *("cross_entropy_loss.default", "binary_cross_entropy_with_logits.default", "margin_ranking_loss.default"),
    *("hinge_embedding_loss.default", "poisson_nll_loss.default", "cosine_embedding_loss.default"),
    *("triplet_margin_loss.default", "multi_margin_loss.default", "multilabel_margin_loss.default"),
)
"""Losses whose value for padding, which is filled with zeros, is not zero."""


def _reduction(combiner: str) -> RuleFunction:
    def rule(op: Op) -> Rule:
        shape = operand_shape(op, 0)
        if not shape:
            return rules.elementwise(op)
        return rules.reduction(op, normal_dims(attribute(op, "dim"), len(shape)), combiner)

    return rule


def _row(op: Op) -> Rule:
    """Return the rule of ops that need one dimension whole, whose size may change."""
    shape = operand_shape(op, 0)
    return rules.along(op, normal(attribute(op, "dim", -1), len(shape))) if shape else rules.elementwise(op)


def _masked_rows(op: Op) -> Rule:
    """Return the rule of rows with a mask of their own for each, or of one for all, with which all is whole."""
    shape = operand_shape(op, 0)
    ins = range(len(op.operands))
    if any(operand_shape(op, number) != shape for number in ins):
        return whole(op)
    along = normal(attribute(op, "dim", -1), len(shape))
    return tied(op, [(dict.fromkeys(ins, dim), {0: dim}) for dim in range(len(shape)) if dim != along])


def _renorm(op: Op) -> Rule:
    """Return the rule of scaling each slice along a dimension by its norm: all other dimensions are whole."""
    rank = len(operand_shape(op, 0))
    free = normal(attribute(op, "dim"), rank)
    return rules.along(op, [dim for dim in range(rank) if dim != free])


def _mean_squares(op: Op) -> Rule:
    """Return the rule of a loss whose elements are combined: each is whole, unless its elements stay apart."""
    if attribute(op, "reduction", 1) == 0:
        return rules.broadcast(op)
    kind = FactorKind.REDUCTION if attribute(op, "reduction", 1) == 2 else REPLICATED
    shapes = [operand_shape(op, number) for number in range(len(op.operands))]
    wide = broadcast(shapes)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(wide):
        places = {number: aligned(shape, wide, dim) for number, shape in enumerate(shapes)}
        builder.tie({number: place for number, place in places.items() if place is not None}, {}, size, kind=kind)
    return builder.build()


def _nll_loss(op: Op) -> Rule:
    """Return the rule of a loss over classes: batch dimensions sum up where the reduction is a sum."""
    shape = operand_shape(op, 0)
    classes = 0 if len(shape) == 1 else 1
    mode = attribute(op, "reduction", 1)
    kind = {0: FactorKind.PASS_THROUGH, 2: FactorKind.REDUCTION}.get(mode, REPLICATED)
    builder = OpShardingRuleBuilder.for_op(op).tie(_weighted(op, {0: classes}), {}, shape[classes], kind=REPLICATED)
    for dim, size in enumerate(shape):
        if dim != classes:
            place = dim - (dim > classes)
            outs = {number: place for number in range(len(op.results)) if result_shape(op, number)} if mode == 0 else {}
            builder.tie({0: dim, 1: place}, outs, size, kind=kind)
    return builder.build()


def _weighted(op: Op, ins: dict[int, int]) -> dict[int, int]:
    """Return the dimensions of a factor of classes, with that of the weights."""
    names = op.attributes.get("operand_names", ())
    return {**ins, names.index("weight"): 0} if "weight" in names else ins


def _nll_loss_backward(op: Op) -> Rule:
    names = op.attributes["operand_names"]
    input_number, target = names.index("self"), names.index("target")
    grad, shape = names.index("grad_output"), operand_shape(op, input_number)
    classes = 0 if len(shape) == 1 else 1
    builder = OpShardingRuleBuilder.for_op(op).tie(
        _weighted(op, {input_number: classes}), {0: classes}, shape[classes], kind=REPLICATED
    )
    for dim, size in enumerate(shape):
        if dim != classes:
            place = dim - (dim > classes)
            ins = {input_number: dim, target: place} | ({grad: place} if operand_shape(op, grad) else {})
            builder.tie(ins, {0: dim}, size)
    return builder.build()


def _cross_entropy(op: Op) -> Rule:
    """Return the rule of a loss over classes, where the target may hold the chance of each class."""
    shape = operand_shape(op, 0)
    if operand_shape(op, 1) != shape:
        return _nll_loss(op)
    free = [dim for dim in range(len(shape)) if dim != min(1, len(shape) - 1)]
    return tied(op, [({0: dim, 1: dim}, *_loss_factor(op, place)) for place, dim in enumerate(free)])


def _loss_factor(op: Op, place: int) -> tuple[dict[int, int], FactorKind]:
    """Return the dimension of a loss for one of elements, and the kind of its factor, by the mode of reduction."""
    mode = attribute(op, "reduction", 1)
    kind = {0: FactorKind.PASS_THROUGH, 2: FactorKind.REDUCTION}.get(mode, REPLICATED)
    return {0: place} if mode == 0 else {}, kind


def _loss_of_rows(op: Op) -> Rule:
    """Return the rule of a loss of rows, whose last dimension is whole; some operands have one number for each row."""
    shapes = [operand_shape(op, number) for number in range(len(op.operands))]
    rank = len(shapes[0]) - 1
    rows = [n for n, shape in enumerate(shapes) if op.attributes["operand_names"][n] != "weight" and len(shape) >= rank]
    if any(shapes[n][:rank] != shapes[0][:rank] for n in rows):
        return None
    return tied(op, [(dict.fromkeys(rows, dim), *_loss_factor(op, dim)) for dim in range(rank)])


def _quantile(op: Op) -> Rule:
    """Return the rule of quantiles along a dimension, or of all elements; several of them come first."""
    shape, along = operand_shape(op, 0), attribute(op, "dim")
    several = len(op.operands) > 1 and len(operand_shape(op, 1)) == 1
    ties: list[tuple[dict[int, int], dict[int, int]]] = [({1: 0}, {0: 0})] if several else []
    if along is not None:
        quantile_dim = normal(along, len(shape))
        shift = 0 if attribute(op, "keepdim", False) else 1
        free = [dim for dim in range(len(shape)) if dim != quantile_dim]
        ties += [({0: dim}, {0: several + dim - shift * (dim > quantile_dim)}) for dim in free]
    return tied(op, ties)


def _steps(op: Op) -> Rule:
    """Return the rule of sums and differences of neighbours along a dimension, which may go away."""
    shape, out = operand_shape(op, 0), result_shape(op)
    along = normal(attribute(op, "dim", -1), len(shape))
    ins = [n for n in range(len(op.operands)) if operand_shape(op, n) == shape]
    shift = int(len(out) < len(shape))
    free = [dim for dim in range(len(shape)) if dim != along]
    outs = range(len(op.results))
    return tied(op, [(dict.fromkeys(ins, dim), dict.fromkeys(outs, dim - shift * (dim > along))) for dim in free])


def _histogram(op: Op) -> Rule:
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(operand_shape(op, 0)):
        kind = FactorKind.REDUCTION if attribute(op, "max", 0) > attribute(op, "min", 0) else REPLICATED
        builder.tie({0: dim}, {}, size, kind=kind)
    return builder.tie({}, {0: 0}, result_shape(op)[0], kind=REPLICATED).build()


def _localize_class_loss(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the loss of the device's part of classes: padding counts as targets that are ignored."""
    shard.check_kinds()
    number = operand_number(op, "target")
    type_ = None if number is None else shard.operands[number].type
    if number is None or not isinstance(type_, TensorType):
        raise no_local_form("the loss has no target")
    ignored = shard.ops.scalar(shard.emit, type_.element_type, float(attribute(op, "ignore_index", -100)))
    if ignored is None:
        raise no_local_form(f"{type_.element_type} has no number for targets that are ignored")
    operands = list(shard.operands)
    operands[number] = shard.masked(number, shard.padded_dims(number), ignored)
    return evolve(shard, operands=operands).copy()


def _localize_loss(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the loss of the device's part; that of zeros, which padding is filled with, is not zero."""
    shard.check_kinds()
    if attribute(op, "reduction", 1) and any(shard.padded_dims(number) for number in range(len(op.operands))):
        raise no_local_form("the operands do not divide into equal parts, and padding has a loss of its own")
    return shard.copy()


def register(aten: Dialect) -> None:
    """Define the ops."""
    for combiner, names in _COMBINERS.items():
        for name in names:
            aten.op(f"aten.{name}", traits=[Pure], rule=_reduction(combiner))
    for name in (*_ROWS, *_TOP):
        aten.op(f"aten.{name}", traits=[Pure], rule=_row)
    for name in ("_masked_softmax", "_masked_softmax_backward"):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_masked_rows)
    aten.op("aten.msort.default", traits=[Pure], rule=lambda op: rules.along(op, 0))
    aten.op("aten.renorm.default", traits=[Pure], rule=_renorm)
    for name in (
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "soft_margin_loss",
        "kl_div",
        "margin_ranking_loss",
        "hinge_embedding_loss",
        "poisson_nll_loss",
    ):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_mean_squares)
    for name in _CLASS_LOSSES:
        aten.op(f"aten.{name}", traits=[Pure], rule=_nll_loss)
    for name in ("nll_loss_backward.default", "nll_loss2d_backward.default"):
        aten.op(f"aten.{name}", traits=[Pure], rule=_nll_loss_backward)
    aten.op("aten.cross_entropy_loss.default", traits=[Pure], rule=_cross_entropy)
    aten.op("aten.histc.default", traits=[Pure], rule=_histogram)
    for name in _WHOLE:
        aten.op(f"aten.{name}", traits=[Pure], rule=whole)
    for name in ("cosine_embedding_loss", "triplet_margin_loss", "multi_margin_loss", "multilabel_margin_loss"):
        aten.op(f"aten.{name}.default", traits=[Pure], rule=_loss_of_rows)
    for name in ("quantile.scalar", "quantile.default", "nanquantile.scalar", "nanquantile.default"):
        aten.op(f"aten.{name}", traits=[Pure], rule=_quantile)
    for name in (
        "trapezoid.dx",
        "trapezoid.x",
        "cumulative_trapezoid.dx",
        "cumulative_trapezoid.x",
        "gradient.scalarint",
    ):
        aten.op(f"aten.{name}", traits=[Pure], rule=_steps)


FORMS: Mapping[str, Localize] = {
    **dict.fromkeys(_CLASS_LOSSES, _localize_class_loss),
    **dict.fromkeys(_LOSSES_OF_PADDING, _localize_loss),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""
