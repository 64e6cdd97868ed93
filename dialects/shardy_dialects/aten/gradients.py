"""Rules of gradients that are operators of their own."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_dialects.aten.arguments import (
    Rule,
    Tie,
    attribute,
    input_sized,
    normal,
    operand_shape,
    result_shape,
    sized,
    tied,
    whole,
)
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import Localize
from shardy_py.plugins import Dialect, Pure
from shardy_py.sharding import rules

ELEMENTS = (
    *("elu_backward", "hardshrink_backward", "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward"),
    *("leaky_relu_backward", "mish_backward", "softplus_backward", "softshrink_backward", "_prelu_kernel_backward"),
    "rrelu_with_noise_backward",
)
LOSSES = (
    "soft_margin_loss_backward",
    *("mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "binary_cross_entropy_backward"),
)
RESIZED = (
    *(f"upsample_{kind}_backward" for kind in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d")),
    *(f"{name}{rank}d_backward" for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)),
    *(f"_upsample_{kind}2d_aa_backward" for kind in ("bilinear", "bicubic", "lanczos")),
)
"""Gradients that have the sizes of their result as the argument ``input_size``."""
_IMAGES = (
    *RESIZED,
    *(f"{name}_pad{rank}d_backward" for name in ("reflection", "replication") for rank in (1, 2, 3)),
    *("avg_pool3d_backward", "max_pool3d_with_indices_backward", "_adaptive_avg_pool3d_backward"),
    *("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward"),
    *("fractional_max_pool2d_backward", "fractional_max_pool3d_backward"),
)
_STEPS = ("_fused_adam", "_fused_adamw", "_fused_adagrad", "_fused_sgd")
"""Steps of optimizers, which the frontend calls for one parameter at a time."""
_WHOLE = ("native_group_norm_backward", "_cdist_backward", "_weight_norm_interface_backward")


def _loss(op: Op) -> Rule:
    """Return the rule of gradients of the elements of a loss; those of a mean depend on how many there are."""
    return whole(op) if attribute(op, "reduction", 1) == 1 else rules.broadcast(op)


def _rows(op: Op) -> Rule:
    """Return the rule of gradients of a loss of rows; those of a mean depend on how many rows there are."""
    names = op.attributes["operand_names"]
    input_number = names.index("self")
    if attribute(op, "reduction", 1) == 1 or len(operand_shape(op, input_number)) != 2:
        return whole(op)
    size = operand_shape(op, input_number)[0]
    ins = [n for n, name in enumerate(names) if name != "weight" and operand_shape(op, n)[:1] == (size,)]
    return tied(op, [(dict.fromkeys(ins, 0), {0: 0})])


def _of_one_shape(op: Op) -> Rule:
    """Return the rule of ops on elements, where a tensor that devices of some kind do not need may be empty."""
    shape = operand_shape(op, 0)
    ins = [number for number in range(len(op.operands)) if operand_shape(op, number) == shape]
    outs = [number for number in range(len(op.results)) if result_shape(op, number) == shape]
    return tied(op, [(dict.fromkeys(ins, dim), dict.fromkeys(outs, dim)) for dim in range(len(shape))])


def _image(op: Op) -> Rule:
    """Return the rule of gradients of windows over images: batch and channels are free."""
    shape = operand_shape(op, 0)
    free = len(shape) - int(next(char for char in op.name if char in "123"))
    ins = range(len(op.operands))
    if any(len(operand_shape(op, number)) != len(shape) for number in ins):
        return None
    return tied(op, [(dict.fromkeys(ins, dim), {0: dim}) for dim in range(free)])


def _channels(op: Op) -> Rule:
    """Return the rule of the gradients of a batch normalization: channels are free."""
    size = operand_shape(op, 1)[1]

    def places(shapes: list[tuple[int, ...]]) -> dict[int, int]:
        channel_dims = {n: int(len(shape) > 1) for n, shape in enumerate(shapes) if shape}
        return {n: dim for n, dim in channel_dims.items() if shapes[n][dim] == size}

    ins = places([operand_shape(op, number) for number in range(len(op.operands))])
    return tied(op, [(ins, places([result_shape(op, number) for number in range(len(op.results))]))])


def _along(op: Op) -> Rule:
    """Return the rule of gradients of ops along one dimension, which is whole in all tensors."""
    rank = len(result_shape(op))
    along = normal(attribute(op, "dim", -1), rank)
    ins = range(len(op.operands))
    return tied(op, [(dict.fromkeys(ins, dim), {0: dim}) for dim in range(rank) if dim != along])


def _diagonal(op: Op) -> Rule:
    """Return the rule of the gradient of diagonals of two dimensions, which are whole."""
    rank = len(result_shape(op))
    diagonal_dims = {normal(attribute(op, f"dim{number}"), rank) for number in (1, 2)}
    free_dims = [dim for dim in range(rank) if dim not in diagonal_dims]
    ties: list[Tie] = [({0: place}, {0: dim}) for place, dim in enumerate(free_dims)]
    return tied(op, ties)


def _samples(op: Op) -> Rule:
    """Return the rule of the gradients of look-ups at places of a grid: the batch is free."""
    return tied(op, [({0: 0, 1: 0, 2: 0}, dict.fromkeys(range(len(op.results)), 0))])


def register(aten: Dialect) -> None:
    """Define the ops."""
    by_rule = {
        rules.broadcast: ELEMENTS,
        _loss: LOSSES,
        _image: _IMAGES,
        _rows: ("multi_margin_loss_backward", "multilabel_margin_loss_backward"),
        _channels: ("native_batch_norm_backward",),
        _along: ("glu_backward", "unfold_backward"),
        _diagonal: ("diagonal_backward",),
        _samples: ("grid_sampler_2d_backward", "grid_sampler_3d_backward"),
        _of_one_shape: ("log_sigmoid_forward", "log_sigmoid_backward", *_STEPS),
        whole: _WHOLE,
    }
    for name in _STEPS:
        aten.op(f"aten.{name}.tensor_lr", traits=[Pure], rule=_of_one_shape)
    for rule, names in by_rule.items():
        for name in names:
            aten.op(f"aten.{name}.default", traits=[Pure], rule=rule)


FORMS: Mapping[str, Localize] = {
    **{f"{name}.default": sized("input_size") for name in RESIZED},
    **dict.fromkeys(("diagonal_backward.default", "unfold_backward.default"), input_sized),
}
"""The local forms by the names of the overloads; those of all other ops change in their types only."""
