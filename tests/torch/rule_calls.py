"""One call of each operator that has a rule, with tensors whose sizes tell the dimensions apart."""

from __future__ import annotations

from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*shape: int) -> torch.Tensor:
    """Return numbers that are neither equal nor around zero only."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + 7 * len(shape)))


def numbers(limit: int, *shape: int) -> torch.Tensor:
    """Return whole numbers below a limit."""
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(limit + sum(shape)))


def given(*args: Any, **kwargs: Any) -> Arguments:
    """Return the arguments of a call."""
    return args, kwargs


X, Y, V = floats(6, 4, 8), floats(6, 4, 8) + 0.5, floats(8)
FLAGS, RARE, WHOLE = X > 0, torch.isclose(X, X.max()), numbers(9, 6, 4, 8)
IMAGE, KERNEL, SIGNAL, VOLUME = floats(6, 4, 8, 10), floats(8, 4, 3, 3), floats(6, 4, 8), floats(2, 4, 6, 4, 8)
ROWS, CLASSES, DENSE = floats(6, 8), numbers(8, 6), numbers(8, 6, 4, 10)
HEADS = tuple(floats(2, 4, 6, 8) + number for number in range(3))
PARTS = (floats(8), floats(8) + 1)
CHANNELS = (floats(4), floats(4) + 1, floats(4) / 9, floats(4).abs() + 1)
SOFT = X.softmax(-1)
NORMALIZED = torch.ops.aten.native_layer_norm(X, [8], *PARTS, 1e-5)
POOLED = torch.ops.aten.max_pool2d_with_indices(IMAGE, [3, 3], [2, 2], [1, 1])
ATTENDED = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*HEADS)
LOGS = floats(6, 8, 4, 10).log_softmax(1)
TABLE, BAG = floats(8, 6), (numbers(8, 12), torch.tensor([0, 4, 6, 9]))
INDEX = numbers(4, 6, 4, 8)
COMPLEX, SQUARE = torch.complex(X, Y), floats(6, 4, 4) @ floats(6, 4, 4).mT + 4 * torch.eye(4)
FACTOR, SIDES = torch.linalg.cholesky(SQUARE), floats(6, 4, 8)
_DOUBLES = ("multiply", "subtract", "divide", "greater", "greater_equal", "less", "less_equal", "not_equal")
_OF_MATRICES = (
    *(
        "linalg_cholesky",
        "cholesky",
        "linalg_cholesky_ex",
        "linalg_inv",
        "inverse",
        "linalg_inv_ex",
        "linalg_det",
        "det",
    ),
    *("logdet", "slogdet", "linalg_slogdet", "linalg_qr", "linalg_svd", "linalg_svdvals", "linalg_eigh"),
    *("linalg_eigvalsh", "linalg_matrix_exp", "matrix_exp", "_linalg_det", "_linalg_slogdet", "_linalg_eigh"),
    "_linalg_svd",
)

CALLS: dict[str, Arguments] = {
    # Shapes.
    **dict.fromkeys(
        ("view.default", "_unsafe_view.default", "view_copy.default", "reshape.default"), given(X, [24, 8])
    ),
    "_reshape_alias.default": given(X, [24, 8], [8, 1]),
    "flatten.using_ints": given(X, 1, 2),
    "unflatten.int": given(X, 2, [2, 4]),
    **dict.fromkeys(("unsqueeze.default", "unsqueeze_copy.default"), given(X, 1)),
    "squeeze.default": given(X[:, None]),
    **dict.fromkeys(("squeeze.dim", "squeeze_copy.dim"), given(X[:, None], 1)),
    **dict.fromkeys(("squeeze.dims", "squeeze_copy.dims"), given(X[:, None, :, None], [1, 3])),
    "ravel.default": given(floats(6, 1)),
    **dict.fromkeys(("permute.default", "permute_copy.default"), given(X, [2, 0, 1])),
    **dict.fromkeys(("transpose.int", "transpose_copy.int", "swapaxes.default", "swapdims.default"), given(X, 0, 2)),
    **dict.fromkeys(("t.default", "t_copy.default"), given(ROWS)),
    **dict.fromkeys(("numpy_T.default", "mT.default"), given(X)),
    "adjoint.default": given(X),
    "mH.default": given(torch.complex(X, Y)),
    "movedim.int": given(X, 0, 2),
    "movedim.intlist": given(X, [0, 1], [1, 2]),
    **dict.fromkeys(("expand.default", "expand_copy.default", "broadcast_to.default"), given(X[:, :1], [2, 6, 4, 8])),
    "flip.default": given(X, [0]),
    "roll.default": given(X, [1], [0]),
    **dict.fromkeys(("slice.Tensor", "slice_copy.Tensor"), given(X, 0, 1, 5)),
    **dict.fromkeys(("narrow.default", "narrow_copy.default"), given(X, 0, 1, 4)),
    **dict.fromkeys(("split.Tensor", "split_copy.Tensor"), given(X, 2, 0)),
    **dict.fromkeys(("split_with_sizes.default", "split_with_sizes_copy.default"), given(X, [2, 4], 0)),
    **dict.fromkeys(("chunk.default", "tensor_split.sections"), given(X, 2, 0)),
    "constant_pad_nd.default": given(X, [2, 2], 0.5),
    **dict.fromkeys(("hstack.default", "column_stack.default"), given([X, Y])),
    **dict.fromkeys(("vstack.default", "row_stack.default"), given([X, Y])),
    "dstack.default": given([ROWS, ROWS + 1]),
    **dict.fromkeys(("fliplr.default", "flipud.default"), given(X)),
    "rot90.default": given(X, 1, [0, 2]),
    "meshgrid.default": given([floats(6), floats(4)]),
    "meshgrid.indexing": given([floats(6), floats(4)], indexing="xy"),
    **dict.fromkeys(("unsafe_split.Tensor", "unsafe_chunk.default"), given(X, 2, 0)),
    "unsafe_split_with_sizes.default": given(X, [2, 4], 0),
    "diff.default": given(X, 2, 0),
    **dict.fromkeys(("select.int", "select_copy.int"), given(X, 1, 2)),
    **dict.fromkeys(("unbind.int", "unbind_copy.int"), given(X, 1)),
    "slice_backward.default": given(X[:, 1:3], [6, 4, 8], 1, 1, 3, 1),
    "select_backward.default": given(X[:, 1], [6, 4, 8], 1, 2),
    "slice_scatter.default": given(X, Y[:, :2], 1, 1, 3),
    "select_scatter.default": given(X, Y[:, 0], 1, 2),
    **dict.fromkeys(("cat.default", "concat.default", "concatenate.default"), given([X, Y], 1)),
    "stack.default": given([X, Y], 1),
    **dict.fromkeys(("reflection_pad1d.default", "replication_pad1d.default"), given(X, [2, 2])),
    **dict.fromkeys(("reflection_pad2d.default", "replication_pad2d.default"), given(IMAGE, [3, 2, 2, 2])),
    **dict.fromkeys(("reflection_pad3d.default", "replication_pad3d.default"), given(VOLUME, [2, 2, 1, 1, 2, 1])),
    "pad.default": given(X, [2, 2], "constant", 0.5),
    **dict.fromkeys(("tril.default", "triu.default"), given(X)),
    **dict.fromkeys(("repeat.default", "tile.default"), given(X, [1, 2, 1])),
    "pixel_shuffle.default": given(floats(6, 8, 2, 4), 2),
    "pixel_unshuffle.default": given(floats(6, 2, 4, 8), 2),
    "repeat_interleave.self_int": given(X, 2, 1),
    "unfold.default": given(ROWS.repeat(1, 2)[:, :10], 1, 4, 2),
    "view_as_complex.default": given(floats(6, 4, 2)),
    "view_as_real.default": given(torch.complex(X, Y)),
    # Elements.
    **dict.fromkeys(
        (
            *("clone.default", "alias.default", "alias_copy.default", "detach.default", "detach_copy.default"),
            *("contiguous.default", "lift_fresh.default", "lift_fresh_copy.default", "positive.default"),
            *("conj.default", "resolve_conj.default"),
        ),
        given(X),
    ),
    "_conj_copy.default": given(torch.complex(X, Y)),
    "_to_copy.default": given(X, dtype=torch.float64),
    "to.dtype": given(X, torch.float64),
    "to.dtype_layout": given(X, dtype=torch.float64),
    "type_as.default": given(WHOLE, X),
    "expand_as.default": given(X[:, :1], Y),
    "copy.default": given(X, V),
    "fill.Scalar": given(X, 2.0),
    "dropout.default": given(X, 0.5, False),
    "native_dropout.default": given(X, 0.5, False),
    "native_dropout_backward.default": given(X, FLAGS, 2.0),
    "threshold_backward.default": given(X, Y, 0.5),
    **dict.fromkeys(("__and__.Tensor", "__or__.Tensor", "__xor__.Tensor"), given(WHOLE, WHOLE.flip(0))),
    **dict.fromkeys(("__lshift__.Tensor", "__rshift__.Tensor"), given(WHOLE, WHOLE.flip(0))),
    **dict.fromkeys(("__and__.Scalar", "__or__.Scalar", "__xor__.Scalar"), given(WHOLE, 5)),
    **dict.fromkeys(("__lshift__.Scalar", "__rshift__.Scalar"), given(WHOLE, 1)),
    "float_power.Tensor_Scalar": given(X.abs(), 2.0),
    "floor_divide.default": given(X, V),
    "floor_divide.Scalar": given(X, 2),
    "rsub.Scalar": given(X, 2),
    "rsub.Tensor": given(X, V),
    "where.self": given(FLAGS, X, V),
    "where.ScalarOther": given(FLAGS, X, 2.0),
    "where.ScalarSelf": given(FLAGS, 2.0, X),
    "where.Scalar": given(FLAGS, 2.0, 1.0),
    "masked_fill.Scalar": given(X, FLAGS, 2.0),
    "masked_fill.Tensor": given(X, FLAGS, torch.tensor(2.0)),
    "prelu.default": given(X, floats(4)),
    "_prelu_kernel.default": given(X, floats(1, 4, 1)),
    **{f"{name}.Scalar": given(X, 2) for name in _DOUBLES},
    **{f"{name}.Tensor": given(X, V) for name in _DOUBLES},
    "divide.Tensor_mode": given(X, V, rounding_mode="floor"),
    "divide.Scalar_mode": given(X, 2, rounding_mode="floor"),
    "true_divide.Scalar": given(X, 2),
    **{f"{name}.default": given(X) for name in ("absolute", "fix", "negative", "hardswish", "log_sigmoid")},
    **{f"{name}.default": given(SOFT) for name in ("arccos", "arcsin", "arctan", "arctanh", "arcsinh")},
    "arccosh.default": given(SOFT + 1),
    **{f"{name}.default": given(X, Y) for name in ("arctan2", "complex", "isclose")},
    "broadcast_tensors.default": given([X, V]),
    **{f"{name}.default": given(COMPLEX) for name in ("real", "imag")},
    **{
        f"special_{name}.default": given(SOFT + 0.1)
        for name in (
            *("digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "logit", "ndtr"),
            *("psi", "round", "sinc"),
        )
    },
    **{f"special_{name}.default": given(SOFT, SOFT + 1) for name in ("gammainc", "gammaincc", "xlogy")},
    "special_multigammaln.default": given(SOFT + 3, 2),
    "special_polygamma.default": given(1, SOFT + 1),
    "special_xlogy.other_scalar": given(SOFT, 2.0),
    "special_xlogy.self_scalar": given(2.0, SOFT),
    "fill.Tensor": given(X, torch.tensor(2.0)),
    "to.other": given(WHOLE, V),
    # Matrices.
    **{f"{name}.default": given(SQUARE) for name in _OF_MATRICES},
    "cholesky_inverse.default": given(FACTOR),
    **dict.fromkeys(("linalg_matrix_power.default", "matrix_power.default"), given(SQUARE, 3)),
    "linalg_solve.default": given(SQUARE, SIDES),
    "_linalg_solve_ex.default": given(SQUARE, SIDES),
    "linalg_solve_triangular.default": given(FACTOR, SIDES, upper=False),
    "cholesky_solve.default": given(SIDES, FACTOR),
    "triangular_solve.default": given(SIDES, FACTOR, False),
    **{f"fft_{name}.default": given(COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")},
    **{f"fft_{name}.default": given(X, 6) for name in ("rfft", "ihfft")},
    **{f"fft_{name}.default": given(COMPLEX) for name in ("fft2", "ifft2", "irfft2")},
    "fft_rfft2.default": given(X, [4, 6]),
    **{f"fft_{name}.default": given(COMPLEX, [4, 8]) for name in ("fftn", "ifftn", "irfftn")},
    "fft_rfftn.default": given(X, [4, 6]),
    **{f"fft_{name}.default": given(X, [1]) for name in ("fftshift", "ifftshift")},
    "_fft_r2c.default": given(X, [0], 0, True),
    "_fft_c2c.default": given(COMPLEX, [1], 0, True),
    "_fft_c2r.default": given(COMPLEX, [1], 0, 6),
    **dict.fromkeys(("diagonal.default", "diagonal_copy.default"), given(X, 0, 0, 2)),
    "diag_embed.default": given(ROWS),
    **{f"{name}.default": given(floats(6, 8)) for name in ("trace", "diag")},
    "cdist.default": given(X, floats(6, 10, 8)),
    "_cdist_forward.default": given(X, floats(6, 10, 8), 2.0, None),
    "cosine_similarity.default": given(X, Y, 1),
    "pairwise_distance.default": given(X, Y),
    "linalg_cross.default": given(floats(6, 3, 8), floats(6, 3, 8) + 1, dim=1),
    "linalg_vecdot.default": given(X, Y, dim=1),
    "inner.default": given(X, floats(10, 8)),
    "tensordot.default": given(X, floats(8, 6, 10), [0, 2], [1, 0]),
    # Products.
    "mm.default": given(floats(6, 4), floats(4, 8)),
    "bmm.default": given(floats(2, 6, 4), floats(2, 4, 8)),
    "matmul.default": given(floats(2, 6, 4), floats(4, 8)),
    "mv.default": given(floats(6, 4), floats(4)),
    **dict.fromkeys(("dot.default", "vdot.default"), given(V, V + 1)),
    "linear.default": given(X, floats(10, 8)),
    "einsum.default": given("bik,bkj->bji", [floats(2, 6, 4), floats(2, 4, 8)]),
    **dict.fromkeys(("outer.default", "ger.default"), given(floats(6), floats(4))),
    "addmm.default": given(floats(8), floats(6, 4), floats(4, 8)),
    "baddbmm.default": given(floats(2, 6, 8), floats(2, 6, 4), floats(2, 4, 8)),
    "convolution.default": given(IMAGE, KERNEL, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
    "conv1d.default": given(SIGNAL, KERNEL[..., 0]),
    "conv1d.padding": given(SIGNAL, KERNEL[..., 0], None, [1], "same"),
    "conv2d.default": given(IMAGE, KERNEL),
    "conv2d.padding": given(IMAGE, KERNEL, None, [1, 1], "same"),
    "conv3d.default": given(VOLUME, floats(8, 4, 3, 3, 3)),
    "conv3d.padding": given(VOLUME, floats(8, 4, 3, 3, 3), None, [1, 1, 1], "same"),
    "conv_transpose1d.default": given(SIGNAL, floats(4, 6, 3)),
    "conv_transpose2d.input": given(IMAGE, floats(4, 6, 3, 3)),
    "conv_transpose3d.input": given(VOLUME, floats(4, 6, 3, 3, 3)),
    "convolution_backward.default": given(
        *(floats(6, 8, 8, 10), IMAGE, KERNEL, [8], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, False, False])
    ),
    "scaled_dot_product_attention.default": given(*HEADS),
    "_scaled_dot_product_flash_attention_for_cpu.default": given(*HEADS),
    "_scaled_dot_product_flash_attention_for_cpu_backward.default": given(
        HEADS[2] / 3, *HEADS, ATTENDED[0], ATTENDED[1], 0.0, False
    ),
    "_grouped_mm.default": given(floats(16, 8), floats(2, 8, 16), offs=torch.tensor([8, 16], dtype=torch.int32)),
    # Reductions.
    **dict.fromkeys(
        (
            *("sum.default", "nansum.default", "count_nonzero.default", "max.default", "min.default"),
            *("prod.default", "mean.default", "argmax.default", "argmin.default", "median.default"),
            *("var.default", "std.default"),
        ),
        given(X),
    ),
    **dict.fromkeys(
        ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default", "logsumexp.default"), given(X, [0, 2])
    ),
    **dict.fromkeys(("var.dim", "std.dim", "var_mean.dim"), given(X, [0, 2])),
    **dict.fromkeys(
        ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction"),
        given(X, [0, 2], correction=0),
    ),
    "count_nonzero.dim_IntList": given(FLAGS, [0, 2]),
    "any.default": given(RARE),
    "all.default": given(~RARE),
    "any.dims": given(RARE, [0, 2]),
    "all.dims": given(~RARE, [0, 2]),
    "any.dim": given(RARE, 0),
    "all.dim": given(~RARE, 0),
    **dict.fromkeys(
        (
            *("prod.dim_int", "max.dim", "min.dim", "median.dim", "mode.default", "cumsum.default", "cumprod.default"),
            *("cummax.default", "cummin.default", "logcumsumexp.default", "sort.default", "argsort.default"),
        ),
        given(X, 1),
    ),
    **dict.fromkeys(("sort.stable", "argsort.stable"), given(X, stable=True, dim=1)),
    "kthvalue.default": given(X, 2, 1),
    "topk.default": given(X, 2, 1),
    "aminmax.default": given(X, dim=1),
    "linalg_vector_norm.default": given(X, 2, [1]),
    "norm.Scalar": given(X, 2),
    "norm.ScalarOpt_dim": given(X, 2, [1]),
    **dict.fromkeys(("softmax.int", "log_softmax.int", "_safe_softmax.default"), given(X, 1)),
    **dict.fromkeys(("_softmax.default", "_log_softmax.default"), given(X, 1, False)),
    **dict.fromkeys(
        ("_softmax_backward_data.default", "_log_softmax_backward_data.default"), given(Y, SOFT, 2, torch.float32)
    ),
    "msort.default": given(X),
    **dict.fromkeys(("std_mean.default", "var_mean.default", "nanmean.default", "nanmedian.default"), given(X)),
    "std_mean.dim": given(X, [0, 2]),
    "nanmedian.dim": given(X, 1),
    **dict.fromkeys(("linalg_norm.default", "linalg_matrix_norm.default"), given(X, 2, [0, 2])),
    "linalg_matrix_norm.str_ord": given(X, "fro", [0, 2]),
    "renorm.default": given(X, 2.0, 1, 0.5),
    "glu.default": given(X, 1),
    "histc.default": given(X, 4, -2.0, 2.0),
    # Losses.
    **{
        f"{name}.default": given(X.sigmoid(), Y.sigmoid(), reduction=2)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy")
    },
    "binary_cross_entropy_with_logits.default": given(X, Y.sigmoid(), V.abs(), None, 2),
    "soft_margin_loss.default": given(X, Y.sign(), 2),
    **dict.fromkeys(
        ("nll_loss.default", "nll_loss_nd.default", "nll_loss_forward.default"),
        given(ROWS.log_softmax(-1), CLASSES, None, 2, -100),
    ),
    "nll_loss2d_forward.default": given(LOGS, DENSE, None, 2, -100),
    "nll_loss_backward.default": given(torch.tensor(2.0), ROWS, CLASSES, None, 2, -100, torch.tensor(6.0)),
    "nll_loss2d_backward.default": given(torch.tensor(2.0), LOGS, DENSE, None, 2, -100, torch.tensor(240.0)),
    "cross_entropy_loss.default": given(ROWS, CLASSES, None, 2),
    # Normalizations.
    "layer_norm.default": given(X, [8], *PARTS),
    "native_layer_norm.default": given(X, [8], *PARTS, 1e-5),
    "native_layer_norm_backward.default": given(
        *(Y, X, [8], NORMALIZED[1], NORMALIZED[2], *PARTS, [True, False, False])
    ),
    **dict.fromkeys(("rms_norm.default", "_fused_rms_norm.default"), given(X, [8], PARTS[0], 1e-5)),
    "group_norm.default": given(X, 2, *CHANNELS[:2]),
    "native_group_norm.default": given(X, *CHANNELS[:2], 6, 4, 8, 2, 1e-5),
    "instance_norm.default": given(X, *CHANNELS[:2], None, None, True, 0.1, 1e-5, False),
    "batch_norm.default": given(X, *CHANNELS, False, 0.1, 1e-5, False),
    **dict.fromkeys(
        ("native_batch_norm.default", "_native_batch_norm_legit_functional.default"),
        given(X, *CHANNELS, False, 0.1, 1e-5),
    ),
    "_native_batch_norm_legit.default": given(X, *CHANNELS, False, 0.1, 1e-5),
    "_native_batch_norm_legit.no_stats": given(X, *CHANNELS[:2], True, 0.1, 1e-5),
    **dict.fromkeys(
        ("_native_batch_norm_legit_no_training.default", "_batch_norm_no_update.default"),
        given(X, *CHANNELS, 0.1, 1e-5),
    ),
    "_weight_norm.default": given(X, floats(1, 4, 1) + 3, 1),
    "_weight_norm_interface.default": given(X, floats(6, 1, 1) + 3, 0),
    "polar.default": given(X, Y),
    # Windows.
    **dict.fromkeys(("max_pool1d.default", "avg_pool1d.default"), given(SIGNAL, [3], [2], [1])),
    **dict.fromkeys(
        ("max_pool2d.default", "avg_pool2d.default", "max_pool2d_with_indices.default"),
        given(IMAGE, [3, 3], [2, 2], [1, 1]),
    ),
    **dict.fromkeys(("max_pool3d.default", "avg_pool3d.default"), given(VOLUME, [3, 3, 3], [2, 2, 2], [1, 1, 1])),
    "adaptive_avg_pool1d.default": given(SIGNAL, [2]),
    **dict.fromkeys(
        ("adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default", "adaptive_max_pool2d.default"),
        given(IMAGE, [2, 2]),
    ),
    **dict.fromkeys(("adaptive_avg_pool3d.default", "_adaptive_avg_pool3d.default"), given(VOLUME, [2, 2, 2])),
    "upsample_nearest1d.vec": given(SIGNAL, None, [1.5]),
    "upsample_nearest2d.vec": given(IMAGE, None, [1.5, 1.4]),
    "upsample_nearest3d.vec": given(VOLUME, None, [1.7, 1.5, 1.5]),
    "upsample_linear1d.vec": given(SIGNAL, None, False, [2.0]),
    **dict.fromkeys(("upsample_bilinear2d.vec", "upsample_bicubic2d.vec"), given(IMAGE, None, False, [2.0, 2.0])),
    "upsample_nearest1d.default": given(SIGNAL, [12]),
    "upsample_nearest2d.default": given(IMAGE, [12, 14]),
    "upsample_nearest3d.default": given(VOLUME, [10, 6, 12]),
    **dict.fromkeys(("upsample_bilinear2d.default", "upsample_bicubic2d.default"), given(IMAGE, [16, 20], False)),
    "max_pool2d_with_indices_backward.default": given(
        POOLED[0] / 2, IMAGE, [3, 3], [2, 2], [1, 1], [1, 1], False, POOLED[1]
    ),
    "avg_pool2d_backward.default": given(POOLED[0], IMAGE, [3, 3], [2, 2], [1, 1], False, True, None),
    "_adaptive_avg_pool2d_backward.default": given(IMAGE[..., :2, :2], IMAGE),
    "upsample_linear1d.default": given(SIGNAL, [12], False),
    "upsample_trilinear3d.vec": given(VOLUME, None, False, [2.0, 2.0, 2.0]),
    "upsample_trilinear3d.default": given(VOLUME, [10, 6, 12], False),
    "adaptive_max_pool1d.default": given(SIGNAL, [2]),
    "adaptive_max_pool3d.default": given(VOLUME, [2, 2, 2]),
    "max_pool3d_with_indices.default": given(VOLUME, [3, 3, 3], [2, 2, 2], [1, 1, 1]),
    "im2col.default": given(IMAGE, [3, 3], [1, 1], [1, 1], [2, 2]),
    "col2im.default": given(floats(6, 36, 20), [8, 10], [3, 3], [1, 1], [1, 1], [2, 2]),
    **dict.fromkeys(
        ("grid_sampler.default", "grid_sampler_2d.default"), given(IMAGE, floats(6, 12, 14, 2) / 3, 0, 0, False)
    ),
    "grid_sampler_3d.default": given(VOLUME, floats(2, 10, 12, 14, 3) / 3, 0, 0, False),
    "channel_shuffle.default": given(IMAGE, 2),
    # Look-ups.
    "embedding.default": given(TABLE, numbers(8, 4, 10)),
    "embedding_dense_backward.default": given(floats(4, 10, 6), numbers(8, 4, 10), 8, -1, False),
    **dict.fromkeys(("embedding_bag.default", "_embedding_bag_forward_only.default"), given(TABLE, *BAG, False, 1)),
    "embedding_bag.padding_idx": given(TABLE, *BAG, False, 1, False, None, False, None),
    **dict.fromkeys(("index.Tensor", "_unsafe_index.Tensor"), given(X, [None, numbers(4, 10), None])),
    **dict.fromkeys(
        ("index_put.default", "_unsafe_index_put.default"),
        given(X, [None, torch.tensor([2, 0]), None], floats(6, 2, 8)),
    ),
    "index_select.default": given(X, 1, numbers(4, 10)),
    "gather.default": given(X, 1, INDEX[:, :2]),
    "take_along_dim.default": given(X, INDEX[:, :2], 1),
    **dict.fromkeys(("scatter.src", "scatter_add.default"), given(X, 1, INDEX, Y)),
    "scatter.value": given(X, 1, INDEX, 5.0),
    "scatter_reduce.two": given(X, 1, INDEX, Y, "amax"),
    "scatter.reduce": given(X, 1, INDEX, Y, reduce="add"),
    "scatter.value_reduce": given(X, 1, INDEX, 5.0, reduce="multiply"),
    **dict.fromkeys(("index_add.default", "index_copy.default"), given(X, 1, torch.tensor([2, 0]), floats(6, 2, 8))),
    "index_fill.int_Scalar": given(X, 1, torch.tensor([2, 0]), 5.0),
    "index_fill.int_Tensor": given(X, 1, torch.tensor([2, 0]), torch.tensor(5.0)),
    "searchsorted.Tensor": given(X.sort(-1)[0], floats(6, 4, 10)),
    "one_hot.default": given(numbers(5, 6, 4), 5),
    "bucketize.Tensor": given(X, V.sort()[0]),
    # Layers that step through a sequence.
    "lstm.input": given(
        *(floats(4, 6, 8), [floats(1, 6, 10), floats(1, 6, 10) + 1], [floats(40, 8), floats(40, 10)]),
        *(False, 1, 0.0, False, False, False),
    ),
    **{
        f"{name}.input": given(
            *(floats(4, 6, 8), floats(1, 6, 10), [floats(rows, 8), floats(rows, 10)]),
            *(False, 1, 0.0, False, False, False),
        )
        for name, rows in (("gru", 30), ("rnn_tanh", 10), ("rnn_relu", 10))
    },
    "lstm_cell.default": given(floats(6, 8), [floats(6, 10), floats(6, 10) + 1], floats(40, 8), floats(40, 10)),
    **{
        f"{name}.default": given(floats(6, 8), floats(6, 10), floats(rows, 8), floats(rows, 10))
        for name, rows in (("gru_cell", 30), ("rnn_tanh_cell", 10), ("rnn_relu_cell", 10))
    },
    # Constants of the sizes of others.
    **dict.fromkeys(("zeros_like.default", "ones_like.default"), given(X)),
    "full_like.default": given(X, 5.0),
    **dict.fromkeys(("new_zeros.default", "new_ones.default"), given(X, [6, 10])),
    "new_full.default": given(X, [6, 10], 5.0),
}
"""The arguments by the name of the overload."""
UNKNOWN: dict[str, Arguments] = {
    **dict.fromkeys(("empty_like.default", "rand_like.default", "randn_like.default"), given(X)),
    **{"randint_like.default": given(X, 90), "randint_like.low_dtype": given(X, 3, 90)},
    **{"bernoulli.default": given(SOFT), "bernoulli.p": given(X, 0.3)},
    **{"new_empty.default": given(X, [6, 10]), "new_empty_strided.default": given(X, [6, 10], [10, 1])},
}
"""Those of operators whose numbers are random or left open."""
