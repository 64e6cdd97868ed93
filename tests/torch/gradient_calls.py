"""Calls of gradients that are operators of their own."""

from __future__ import annotations

import torch

from shardy_dialects.aten.gradients import RESIZED
from tests.torch.rule_tensors import (
    BAG,
    CHANNELS,
    CLASSES,
    IMAGE,
    ROWS,
    SIGNAL,
    TABLE,
    VOLUME,
    Arguments,
    X,
    Y,
    floats,
    given,
    numbers,
)

_ONE = torch.tensor(2.0)
_PADS = {1: (SIGNAL, [2, 2]), 2: (IMAGE, [3, 2, 2, 2]), 3: (VOLUME, [2, 2, 1, 1, 2, 1])}
_BY_RANK = {1: SIGNAL, 2: IMAGE, 3: VOLUME}
_LARGEST = torch.ops.aten.max_pool3d_with_indices(VOLUME, [2, 2, 2], [2, 2, 2])
_FLAT = torch.ops.aten.native_group_norm(X, *CHANNELS[:2], 6, 4, 8, 2, 1e-5)
_LENGTHS = torch.ops.aten._weight_norm_interface(ROWS, floats(6, 1) + 3, 0)
_LABELS = numbers(8, 6, 8)
_LABELED = torch.ops.aten.multilabel_margin_loss_forward(ROWS, _LABELS, 2)[1]
_WEIGHTS = floats(12) + 2
_SUMMED = torch.ops.aten._embedding_bag(TABLE, *BAG, False, 0, False, _WEIGHTS)
_MOST = torch.ops.aten._embedding_bag(TABLE, *BAG, False, 2)
_POINTS, _OTHERS = floats(2, 6, 4), floats(2, 8, 4)


def _resized(name: str) -> Arguments:
    rank = int(next(char for char in name if char in "123"))
    image = _BY_RANK[rank]
    large = [2 * size for size in image.shape[2:]]
    grad = floats(*image.shape[:2], *large)
    rest = () if "nearest" in name else (False,)
    return given(grad, large, list(image.shape), *rest)


def _padded(kind: str, rank: int) -> Arguments:
    image, widths = _PADS[rank]
    padded = getattr(torch.ops.aten, f"{kind}_pad{rank}d")(image, widths)
    return given(padded / 2, image, widths)


GRADIENT_CALLS: dict[str, Arguments] = {
    "elu_backward.default": given(X, 1.0, 1.0, 1.0, False, Y),
    **{f"{name}_backward.default": given(X, Y, 0.5) for name in ("hardshrink", "softshrink")},
    **{f"{name}_backward.default": given(X, Y) for name in ("hardsigmoid", "hardswish", "mish")},
    "hardtanh_backward.default": given(X, Y, -0.5, 0.5),
    "leaky_relu_backward.default": given(X, Y, 0.1, False),
    "softplus_backward.default": given(X, Y, 1.0, 20.0),
    "_prelu_kernel_backward.default": given(X, Y, floats(1, 4, 1)),
    "mse_loss_backward.default": given(_ONE, X, Y, 2),
    "smooth_l1_loss_backward.default": given(_ONE, X, Y, 2, 1.0),
    "huber_loss_backward.default": given(_ONE, X, Y, 2, 1.0),
    "soft_margin_loss_backward.default": given(_ONE, X, Y.sign(), 2),
    "multi_margin_loss_backward.default": given(_ONE, ROWS, CLASSES, 1, 1.0, None, 2),
    "multilabel_margin_loss_backward.default": given(_ONE, ROWS, _LABELS, 2, _LABELED),
    "binary_cross_entropy_backward.default": given(_ONE, X.sigmoid(), Y.sigmoid(), None, 2),
    **{f"{name}.default": _resized(name) for name in RESIZED},
    **{
        f"{kind}_pad{rank}d_backward.default": _padded(kind, rank)
        for kind in ("reflection", "replication")
        for rank in (1, 2, 3)
    },
    "avg_pool3d_backward.default": given(_LARGEST[0], VOLUME, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None),
    "max_pool3d_with_indices_backward.default": given(
        *(_LARGEST[0] / 2, VOLUME, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, _LARGEST[1])
    ),
    "_adaptive_avg_pool3d_backward.default": given(VOLUME[..., :2, :2, :2], VOLUME),
    "native_batch_norm_backward.default": given(
        *(X / 2, X, CHANNELS[1], CHANNELS[2], CHANNELS[3], CHANNELS[0], CHANNELS[3], True, 1e-5, [True, True, True])
    ),
    "native_group_norm_backward.default": given(
        *(Y, X, _FLAT[1], _FLAT[2], CHANNELS[0], 6, 4, 8, 2, [True, True, True])
    ),
    "glu_backward.default": given(X[:, :2], Y, 1),
    "unfold_backward.default": given(floats(6, 4, 4), [6, 10], 1, 4, 2),
    "diagonal_backward.default": given(floats(4, 6), [6, 4, 8], 0, 0, 2),
    "grid_sampler_2d_backward.default": given(
        floats(6, 4, 12, 14), IMAGE, floats(6, 12, 14, 2) / 3, 0, 0, False, [True, True]
    ),
    "grid_sampler_3d_backward.default": given(
        floats(2, 4, 10, 12, 14), VOLUME, floats(2, 10, 12, 14, 3) / 3, 0, 0, False, [True, True]
    ),
    "_cdist_backward.default": given(floats(2, 6, 8), _POINTS, _OTHERS, 2.0, torch.cdist(_POINTS, _OTHERS)),
    "rrelu_with_noise_backward.default": given(X, Y, X.abs(), 0.1, 0.3, True, False),
    "log_sigmoid_forward.default": given(X),
    "log_sigmoid_backward.default": given(X, Y, torch.exp(-Y.abs())),
    "_embedding_bag_backward.default": given(
        *(floats(4, 6), *BAG, *_SUMMED[1:], 8, False, 0, False, _WEIGHTS),
    ),
    "_embedding_bag_dense_backward.default": given(floats(4, 6), BAG[0], *_MOST[1:], 8, False, 2, None),
    "_embedding_bag_per_sample_weights_backward.default": given(floats(4, 6), TABLE, *BAG, _SUMMED[1], 0),
    "_trilinear.default": given(floats(6, 4), floats(8, 4, 10), floats(6, 10), [1, 3], [0], [1, 2], [2, 3]),
    "_weight_norm_interface_backward.default": given(floats(6, 8), ROWS, floats(6, 1) + 3, _LENGTHS[1], 0),
}
"""The arguments by the name of the overload."""
