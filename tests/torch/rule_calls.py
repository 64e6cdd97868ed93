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
    "_grouped_mm.default": given(
        floats(16, 8).bfloat16(), floats(2, 8, 16).bfloat16(), offs=torch.tensor([8, 16], dtype=torch.int32)
    ),
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
    "renorm.default": given(X, 2.0, 1, 0.5),
    "glu.default": given(X, 1),
    "histc.default": given(X, 4, -2.0, 2.0),
    # Losses.
    **{
        f"{name}.default": given(X.sigmoid(), Y.sigmoid(), reduction=2)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div")
    },
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
}
"""The arguments by the name of the overload."""
