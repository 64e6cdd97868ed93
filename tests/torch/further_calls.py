"""Calls of operators that other operators and compilers are made of, and of such that are seldom called."""

from __future__ import annotations

import torch

from tests.torch.rule_tensors import (
    CHANNELS,
    IMAGE,
    KERNEL,
    ROWS,
    SIDES,
    SOFT,
    SQUARE,
    VOLUME,
    WHOLE,
    Arguments,
    V,
    X,
    Y,
    floats,
    given,
    numbers,
)

aten = torch.ops.aten
_CONVOLVED = (IMAGE, KERNEL, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
_FLAGS = (False, False, False, False)
_SYMMETRIC = SQUARE + SQUARE.mT
_POOLED_PARTS = aten.fractional_max_pool3d(VOLUME, [2, 2, 2], [3, 2, 4], floats(2, 4, 3).sigmoid())
_SCALE, _ZERO_POINT, _ENABLED = torch.tensor(0.1), torch.tensor(0, dtype=torch.int32), torch.tensor(1)
_SCALES, _ZEROS = floats(4).abs() + 0.1, torch.zeros(4, dtype=torch.int32)
_TARGETS = (floats(10, 6, 8).log_softmax(-1), numbers(7, 6, 4) + 1, [10] * 6, [4] * 6)
_CTC_LOSSES = aten._ctc_loss(*_TARGETS)
_MANY_LABELS = numbers(8, 6, 8)
_MASKED = aten._masked_softmax(X, X > 1, 2, 2)
_SUMS = aten.segment_reduce(X, "sum", lengths=torch.tensor([2, 1, 3]))

_COUNT, _RATES = torch.tensor(3.0), {"lr": 0.1, "weight_decay": 0.01, "maximize": False}
_ADAM = {**_RATES, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": False}
_STEPS = {
    **dict.fromkeys(("_fused_adam", "_fused_adamw"), (([X], [Y], [Y / 2], [X.abs()], [], [_COUNT]), _ADAM)),
    "_fused_adagrad": (([X], [Y], [X.abs()], [_COUNT]), {**_RATES, "lr_decay": 0.1, "eps": 1e-8}),
    "_fused_sgd": (
        ([X], [Y], [Y / 2]),
        {**_RATES, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False},
    ),
}

FURTHER_CALLS: dict[str, Arguments] = {
    # Elements and shapes.
    "_standard_gamma_grad.default": given(X, Y),
    "_dirichlet_grad.default": given(SOFT, SOFT / 2 + 0.1, SOFT + 0.5),
    "lift.default": given(X),
    "_add_relu.Tensor": given(X, Y),
    "_neg_view_copy.default": given(X),
    "isin.Tensor_Scalar": given(WHOLE, 3),
    "squeeze_copy.default": given(X[:, None]),
    "_reshape_copy.default": given(X, [24, 8]),
    "_stack.default": given([X, Y], 1),
    "_chunk_cat.default": given([X, floats(8, 4, 8)], 0, 2),
    **dict.fromkeys(("view.dtype", "view_copy.dtype"), given(X, torch.int16)),
    # Products.
    "_addmm_activation.default": given(floats(10), ROWS, floats(8, 10)),
    "_convolution.default": given(*_CONVOLVED, *_FLAGS),
    "_euclidean_dist.default": given(ROWS, floats(10, 8)),
    "_compute_linear_combination.default": given(X, floats(2, 6)),
    # Matrices.
    **{f"{name}.default": given(SQUARE) for name in ("linalg_lu_factor_ex", "geqrf", "_linalg_eigvals")},
    "linalg_ldl_factor_ex.default": given(_SYMMETRIC),
    "linalg_ldl_solve.default": given(*torch.linalg.ldl_factor(_SYMMETRIC), SIDES),
    "ormqr.default": given(*torch.geqrf(SQUARE), SIDES),
    "linalg_lstsq.default": given(SQUARE, SIDES),
    "_pdist_backward.default": given(floats(15), ROWS, 2.0, torch.pdist(ROWS)),
    # Reductions, rows and losses.
    "linalg__powsum.default": given(X, 2, [1]),
    "norm.ScalarOpt_dtype": given(X, 2, dtype=torch.float64),
    "norm.ScalarOpt_dim_dtype": given(X, 2, [1], False, dtype=torch.float64),
    "_logcumsumexp.default": given(X, 1),
    "histogram.bins_tensor": given(ROWS, V.sort()[0]),
    "_histogramdd_from_bin_cts.default": given(floats(6, 2), [3, 4]),
    "_histogramdd_from_bin_tensors.default": given(floats(6, 2), [V.sort()[0], V.sort()[0]]),
    "_histogramdd_bin_edges.default": given(floats(6, 2), [3, 4]),
    "hash_tensor.default": given(X),
    "_ctc_loss.default": given(*_TARGETS),
    "_ctc_loss.Tensor": given(*_TARGETS[:2], *map(torch.tensor, _TARGETS[2:])),
    "multilabel_margin_loss_forward.default": given(ROWS, _MANY_LABELS, 2),
    "_aminmax.default": given(X),
    "_aminmax.dim": given(X, 1),
    "_masked_softmax.default": given(X, X > 1, 2, 2),
    "_masked_softmax_backward.default": given(Y, _MASKED, X > 1, 2),
    # Look-ups.
    "_unsafe_masked_index.default": given(X, X > 0, [None, numbers(4, 4), None], 0),
    "_unsafe_masked_index_put_accumulate.default": given(
        X, X[:, :2] > 0, [None, torch.tensor([2, 0]), None], floats(6, 2, 8)
    ),
    # Images.
    "fractional_max_pool3d.default": given(VOLUME, [2, 2, 2], [3, 2, 4], floats(2, 4, 3).sigmoid()),
    "_upsample_lanczos2d_aa.default": given(IMAGE, [12, 14], False),
    "_batch_norm_with_update_functional.default": given(IMAGE, *CHANNELS, 0.1, 1e-5),
    # Steps of optimizers.
    **{f"{name}.default": given(*args, **kwargs) for name, (args, kwargs) in _STEPS.items()},
    **{
        f"{name}.tensor_lr": given(*args, **{**kwargs, "lr": torch.tensor(0.1)})
        for name, (args, kwargs) in _STEPS.items()
    },
    # Quantization, there and back.
    "fake_quantize_per_tensor_affine.default": given(X, 0.1, 0, -128, 127),
    "fake_quantize_per_tensor_affine.tensor_qparams": given(X, _SCALE, _ZERO_POINT, -128, 127),
    "fake_quantize_per_tensor_affine_cachemask.default": given(X, 0.1, 0, -128, 127),
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": given(
        X, _SCALE, _ZERO_POINT, _ENABLED, -128, 127
    ),
    "_fake_quantize_learnable_per_tensor_affine.default": given(X, _SCALE[None], torch.zeros(1), -128, 127),
    "_fake_quantize_learnable_per_tensor_affine_backward.default": given(Y, X, _SCALE[None], torch.zeros(1), -128, 127),
    "fake_quantize_per_channel_affine.default": given(X, _SCALES, _ZEROS, 1, -128, 127),
    "fake_quantize_per_channel_affine_cachemask.default": given(X, _SCALES, _ZEROS, 1, -128, 127),
    "_fake_quantize_learnable_per_channel_affine.default": given(X, _SCALES, torch.zeros(4), 1, -128, 127),
    "_fake_quantize_learnable_per_channel_affine_backward.default": given(Y, X, _SCALES, torch.zeros(4), 1, -128, 127),
}
"""The arguments by the name of the overload."""
UNCHECKED: dict[str, Arguments] = {
    "_ctc_loss_backward.default": given(torch.ones(6), *_TARGETS, *_CTC_LOSSES, 0),
    "_ctc_loss_backward.Tensor": given(torch.ones(6), *_TARGETS[:2], *map(torch.tensor, _TARGETS[2:]), *_CTC_LOSSES, 0),
    "adaptive_max_pool2d_backward.default": given(
        floats(6, 4, 2, 2), IMAGE, aten.adaptive_max_pool2d(IMAGE, [2, 2])[1]
    ),
    "adaptive_max_pool3d_backward.default": given(
        floats(2, 4, 2, 2, 2), VOLUME, aten.adaptive_max_pool3d(VOLUME, [2, 2, 2])[1]
    ),
    "fractional_max_pool3d_backward.default": given(
        _POOLED_PARTS[0] / 2, VOLUME, [2, 2, 2], [3, 2, 4], _POOLED_PARTS[1]
    ),
    "fractional_max_pool2d_backward.default": given(
        floats(6, 4, 3, 4),
        IMAGE,
        [2, 2],
        [3, 4],
        aten.fractional_max_pool2d(IMAGE, [2, 2], [3, 4], floats(6, 4, 2).sigmoid())[1],
    ),
    "lu_unpack.default": given(*torch.linalg.lu_factor(SQUARE)),
    "bucketize.Scalar": given(0.5, V.sort()[0]),
    "isin.Scalar_Tensor": given(3, WHOLE),
    "searchsorted.Scalar": given(V.sort()[0], 0.5),
    "masked_scatter_backward.default": given(X, X > 0, [int((X > 0).sum())]),
    # Numbers between others.
    **{
        f"{name}.{kind}": given(*ends, 6)
        for name in ("linspace", "logspace")
        for kind, ends in (
            ("Scalar_Tensor", (0.0, _SCALE)),
            ("Tensor_Scalar", (_SCALE, 1.0)),
            ("Tensor_Tensor", (_SCALE, _SCALE * 3)),
        )
    },
    "_neg_view.default": given(X),
    "_segment_reduce_backward.default": given(_SUMS / 2, _SUMS, X, "sum", lengths=torch.tensor([2, 1, 3])),
    "_sample_dirichlet.default": given(SOFT),
    "randint_like.Tensor": given(X, torch.tensor(90)),
    "bernoulli.Tensor": given(X, SOFT),
    "_fused_moving_avg_obs_fq_helper_functional.default": given(
        X,
        _ENABLED,
        _ENABLED,
        torch.zeros(1),
        torch.ones(1),
        torch.ones(1),
        torch.zeros(1, dtype=torch.int32),
        0.01,
        0,
        255,
        -1,
    ),
}
"""Calls that arithmetic on parts does not check: numbers are random, operands that do not fit read outside of memory,
or a factor could be of another kind as well."""
ON_OTHER_DEVICES = frozenset(
    (
        *("mm.dtype", "bmm.dtype", "addmm.dtype", "baddbmm.dtype", "_scaled_mm_v2.default", "_masked_scale.default"),
        *("convolution_overrideable.default", "_add_relu.Scalar", "_dyn_quant_matmul_4bit.default"),
        *("_mixed_dtypes_linear.default", "_amp_update_scale.default", "_weight_int4pack_mm_for_cpu.default"),
        "_fused_rms_norm_backward.default",
        *("_weight_int4pack_mm.default", "_weight_int4pack_mm_with_scales_and_zeros.default"),
    )
)
"""Operators that CPUs do not have."""
