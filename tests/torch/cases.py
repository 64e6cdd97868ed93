"""Calls of operators, with tensors of even and of uneven sizes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn import functional

Case = tuple[Callable[..., Any], Callable[[int], tuple[torch.Tensor, ...]]]
aten = torch.ops.aten


def _floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + 7 * len(shape)))


def _square(n: int) -> tuple[torch.Tensor, ...]:
    return (_floats(n, 4, n + 1),)


def _pair(n: int) -> tuple[torch.Tensor, ...]:
    return _floats(n, 4), _floats(4)


def _image(n: int) -> tuple[torch.Tensor, ...]:
    return _floats(n, 4, 8, 8), _floats(6, 4, 3, 3)


def _indexed(n: int) -> tuple[torch.Tensor, ...]:
    index = torch.randint(0, 4, (n, 3), generator=torch.Generator().manual_seed(1))
    return _floats(n, 4), index


def _heads(n: int) -> tuple[torch.Tensor, ...]:
    return tuple(_floats(2, n, 4, 6) + number for number in range(3))


def _classes(n: int) -> tuple[torch.Tensor, ...]:
    return _floats(n, 6), torch.randint(0, 6, (n,), generator=torch.Generator().manual_seed(2))


def _table(n: int) -> tuple[torch.Tensor, ...]:
    return _floats(n, 4), torch.randint(0, n, (4, 3), generator=torch.Generator().manual_seed(3))


def _convolution_backward(groups: int, *, transposed: bool = False) -> Callable[..., Any]:
    """Return the gradients of a convolution with a bias."""

    def call(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> Any:
        sizes = ([1, 1], [1, 1], [1, 1], transposed, [0, 0], groups, [True, True, True])
        return aten.convolution_backward(grad, x, weight, [grad.shape[1]], *sizes)

    return call


def _bytes(x: torch.Tensor) -> torch.Tensor:
    return (x * 20).clamp(-100, 100).to(torch.int8)


def _scaled(x: torch.Tensor, y: torch.Tensor, *, by_row: bool) -> torch.Tensor:
    """Return the product of matrices of 8 bits, with one scale or one per row and column."""
    scales = (x.abs().amax(1, keepdim=True), y.abs().amax(1, keepdim=True).t()) if by_row else (torch.ones(()),) * 2
    eight = [item.to(torch.float8_e4m3fn) for item in (x, y)]
    return torch._scaled_mm(eight[0], eight[1].t(), *scales, out_dtype=torch.float32)


def _whole(x: torch.Tensor) -> torch.Tensor:
    """Return small whole numbers of 16 bits, whose sums are exact in any order."""
    return (x * 2).round().bfloat16()


def _ends(size: int) -> torch.Tensor:
    return torch.tensor([2, size], dtype=torch.int32)


def _foreach(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Return what an optimizer computes on lists of tensors."""
    pair, other = [x, y], [x + 1, y - 1]
    return [
        *torch._foreach_add(pair, other, alpha=2),
        *torch._foreach_add(pair, 3.0),
        *torch._foreach_mul(pair, [2.0, 3.0]),
        *torch._foreach_mul(pair, torch.tensor(2.0)),
        *torch._foreach_addcmul(pair, other, other, 0.5),
        *torch._foreach_addcdiv(pair, other, [item.abs() + 1 for item in pair], [0.5, 2.0]),
        *torch._foreach_lerp(pair, other, 0.1),
        *torch._foreach_lerp(pair, other, [item.abs() for item in other]),
        *torch._foreach_sqrt([item.abs() for item in pair]),
        *torch._foreach_pow(pair, 2),
        *torch._foreach_pow(2.0, pair),
        *torch._foreach_maximum(pair, 0.1),
        *torch._foreach_minimum(pair, other),
        *torch._foreach_clamp_max(pair, [0.1, 0.2]),
        *torch._foreach_sign(pair),
        *torch._foreach_norm(pair),
        *torch._foreach_norm(pair, 1),
        *torch._foreach_max(pair),
    ]


def _bag_gradients(mode: int) -> Callable[..., Any]:
    """Return sums of rows of a table, with weights where these are allowed, and their gradients."""

    def call(table: torch.Tensor, rows: torch.Tensor, grad: torch.Tensor, weights: torch.Tensor) -> Any:
        per_sample_weights = None if mode else weights
        rows_and_offsets = rows, torch.tensor([0, 2, 3])
        output = aten._embedding_bag(table, *rows_and_offsets, False, mode, False, per_sample_weights)
        gradient = aten._embedding_bag_backward(
            grad, *rows_and_offsets, *output[1:], len(table), False, mode, False, per_sample_weights
        )
        if mode:
            return output[0], gradient
        return (
            output[0],
            gradient,
            aten._embedding_bag_per_sample_weights_backward(grad, table, *rows_and_offsets, output[1], mode),
        )

    return call


def _bags(n: int) -> tuple[torch.Tensor, ...]:
    rows = torch.randint(0, 4, (7,), generator=torch.Generator().manual_seed(4))
    return _floats(4, n), rows, _floats(3, n), _floats(7)


def _grouped(n: int) -> tuple[torch.Tensor, ...]:
    # The library registers its operators when it is imported, and no result type of a model if that is in a trace.
    import_module("transformers.integrations.moe")
    return _floats(n, 4), _floats(3, 4, 6), torch.tensor([2, 3, n], dtype=torch.int32), _floats(n, 6)


UNARY = {
    "relu": torch.relu,
    "exp": torch.exp,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "tanh": torch.tanh,
    "pow": lambda x: x**2,
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "clone": lambda x: x.clone() + 1,
    "to": lambda x: x.to(torch.float64),
    "clamp": lambda x: x.clamp(-1, 1),
    "sum_all": torch.sum,
    "sum_first": lambda x: x.sum(0),
    "sum_keep": lambda x: x.sum((0, 2), keepdim=True),
    "mean_all": torch.mean,
    "mean_last": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin((0, 1)),
    "max_dim": lambda x: x.max(1),
    "argmax": lambda x: x.argmax(0),
    "prod": lambda x: x.prod(1),
    "any": lambda x: (x > 1).any(0),
    "all": lambda x: (x > -1).all(2),
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(-1),
    "logsumexp": lambda x: x.logsumexp(0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=0),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(-1),
    "topk": lambda x: x.topk(2, 1),
    "transpose": lambda x: x.transpose(0, 2) + 1,
    "permute": lambda x: x.permute(2, 0, 1) + 1,
    "flatten": lambda x: x.flatten(0, 1) + 1,
    "flatten_last": lambda x: x.flatten(1) + 1,
    "split_heads": lambda x: x.view(x.shape[0], 2, 2, x.shape[2]) + 1,
    "unsqueeze": lambda x: x.unsqueeze(1) + 1,
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0) + 1,
    "squeeze_all": lambda x: x[:2].unsqueeze(0).squeeze() + 1,
    "expand": lambda x: x.unsqueeze(0).expand(3, *x.shape) + 1,
    "repeat": lambda x: x.repeat(1, 2, 1),
    "slice": lambda x: x[1:4] + 1,
    "slice_step": lambda x: x[:, ::2] + 1,
    "select": lambda x: x[:, 1] + 1,
    "select_first": lambda x: x[2] + 1,
    "split": lambda x: torch.split(x, 2, 1),
    "chunk": lambda x: x.chunk(2, 0),
    "unbind": lambda x: x.unbind(1),
    "cat": lambda x: torch.cat([x, x + 1], 0),
    "stack": lambda x: torch.stack([x, x + 1], 1),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 1),
    "pad": lambda x: functional.pad(x, (1, 2)),
    "tril": lambda x: x.tril(),
    "new_zeros": lambda x: x.new_zeros(x.shape[0], 3) + x[:, 0, :3],
    "zeros_like": lambda x: torch.zeros_like(x) + x,
    "full": lambda x: torch.full((x.shape[0], 1, 1), 2.0) + x,
    "arange": lambda x: torch.arange(x.shape[0]).view(-1, 1, 1) + x,
    "masked_fill": lambda x: x.masked_fill(x > 0, 5.0),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "group_norm": lambda x: functional.group_norm(x, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=1),
    "one_hot": lambda x: functional.one_hot((x > 0).long(), 3),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
    "select_scatter": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 2),
    "slice_backward": lambda x: aten.slice_backward(x[:, 1:3] + 1, list(x.shape), 1, 1, 3, 1),
    "diff": lambda x: x.diff(dim=1),
    "histc": lambda x: torch.histc(x, 4, -2.0, 2.0),
}
OTHERS: dict[str, Case] = {
    "lists": (_foreach, lambda n: (_floats(n, 4), _floats(4, n, 2))),
    "product of bytes": (
        lambda x, y: torch._int_mm(_bytes(x), _bytes(y)),
        lambda n: (_floats(n, 4), _floats(4, n + 1)),
    ),
    "scaled product": (lambda x, y: _scaled(x, y, by_row=False), lambda n: (_floats(16, 32), _floats(16, 32))),
    "product scaled by rows": (lambda x, y: _scaled(x, y, by_row=True), lambda n: (_floats(16, 32), _floats(16, 32))),
    "packed product": (
        lambda x, w, s: torch._weight_int8pack_mm(x, _bytes(w), s.abs()),
        lambda n: (_floats(n, 16), _floats(n + 2, 16), _floats(n + 2)),
    ),
    "grouped sums": (
        lambda x, y: torch._grouped_mm(_whole(x).t(), _whole(y), offs=_ends(x.shape[0])),
        lambda n: (_floats(n, 8), _floats(n, 16)),
    ),
    "grouped columns": (
        lambda x, y: torch._grouped_mm(_whole(x), _whole(y), offs=_ends(8)),
        lambda n: (_floats(2, n, 8), _floats(8, 8)),
    ),
    "grouped batches": (
        lambda x, y: torch._grouped_mm(_whole(x), _whole(y)),
        lambda n: (_floats(2, n, 8), _floats(2, 8, 8)),
    ),
    "type as a tensor of another shape": (lambda x: x[0].type_as(x.double()), _square),
    "factors without pivots": (
        lambda x: aten.lu_unpack(*torch.linalg.lu_factor(x[..., :4] @ x[..., :4].mT + torch.eye(4)), True, False)[1:],
        _square,
    ),
    "inverse": (lambda x: torch.linalg.inv(x[..., :4] @ x[..., :4].mT + torch.eye(4)), _square),
    "windows": (lambda x, k: functional.unfold(x, 3, padding=1), _image),
    "add": (torch.add, _pair),
    "mul": (torch.mul, _pair),
    "div": (lambda x, y: x / (y.abs() + 1), _pair),
    "linear": (lambda x, w: functional.linear(x, w), lambda n: (_floats(n, 4), _floats(6, 4))),
    "linear_bias": (functional.linear, lambda n: (_floats(n, 4), _floats(6, 4), _floats(6))),
    "addmm": (torch.addmm, lambda n: (_floats(6), _floats(n, 4), _floats(4, 6))),
    "addmm_scaled": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
        lambda n: (_floats(6), _floats(n, 4), _floats(4, 6)),
    ),
    "mm": (torch.mm, lambda n: (_floats(n, 4), _floats(4, 6))),
    "bmm": (torch.bmm, lambda n: (_floats(n, 2, 4), _floats(n, 4, 6))),
    "baddbmm": (torch.baddbmm, lambda n: (_floats(n, 2, 6), _floats(n, 2, 4), _floats(n, 4, 6))),
    "matmul": (torch.matmul, lambda n: (_floats(n, 2, 4), _floats(4, 6))),
    "matmul_batch": (torch.matmul, lambda n: (_floats(n, 1, 2, 4), _floats(3, 4, 6))),
    "matvec": (torch.matmul, lambda n: (_floats(n, 4), _floats(4))),
    "dot": (torch.dot, lambda n: (_floats(n), _floats(n) + 1)),
    "outer": (torch.outer, lambda n: (_floats(n), _floats(4))),
    "einsum_dots": (lambda x, y: torch.einsum("...ik,kj", x, y), lambda n: (_floats(3, n, 4), _floats(4, 6))),
    "einsum_broadcast": (
        lambda x, y: torch.einsum("a...k,b...k->...ab", x, y),
        lambda n: (_floats(2, n, 3, 4), _floats(6, 1, 3, 4)),
    ),
    "einsum": (lambda x, y: torch.einsum("bik,bkj->bji", x, y), lambda n: (_floats(n, 2, 4), _floats(n, 4, 6))),
    "conv2d": (lambda x, w: functional.conv2d(x, w, padding=1), _image),
    "conv2d_bias": (lambda x, w: functional.conv2d(x, w, w.sum((1, 2, 3)), stride=2), _image),
    "depthwise": (lambda x: functional.conv2d(x, x[0, :, None, :3, :3], groups=4), lambda n: (_floats(n, 4, 8, 8),)),
    "conv1d": (functional.conv1d, lambda n: (_floats(n, 4, 8), _floats(6, 4, 3))),
    "conv_transpose": (functional.conv_transpose2d, lambda n: (_floats(n, 4, 5, 5), _floats(4, 6, 3, 3))),
    "max_pool": (lambda x: functional.max_pool2d(x, 2), lambda n: (_floats(n, 4, 8, 8),)),
    "avg_pool": (lambda x: functional.avg_pool2d(x, 2), lambda n: (_floats(n, 4, 8, 8),)),
    "adaptive_pool": (lambda x: functional.adaptive_avg_pool2d(x, 1), lambda n: (_floats(n, 4, 8, 8),)),
    "interpolate": (lambda x: functional.interpolate(x, scale_factor=2.0), lambda n: (_floats(n, 4, 4, 4),)),
    "batch_norm": (
        lambda x, m, v: functional.batch_norm(x, m, v.abs() + 1, training=False),
        lambda n: (_floats(n, 4, 3, 3), _floats(4), _floats(4) + 1),
    ),
    "attention": (functional.scaled_dot_product_attention, _heads),
    "causal_attention": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), _heads),
    "embedding": (lambda t, i: functional.embedding(i, t), _table),
    "index_select": (lambda x, i: x.index_select(1, i[0]), _indexed),
    "gather": (lambda x, i: x.gather(1, i), _indexed),
    "scatter": (lambda x, i: x.scatter(1, i, 5.0), _indexed),
    "scatter_add": (lambda x, i: x.scatter_add(1, i, x[:, :3]), _indexed),
    "index": (lambda x, i: x[:, i[0]], _indexed),
    "index_two": (lambda x, i: x[i[:, 0] % 2, i[:, 1]], _indexed),
    "index_put": (lambda x, i: x.index_put((torch.arange(3), i[0]), x[:3, 0]), _indexed),
    "cross_entropy": (functional.cross_entropy, _classes),
    "nll_loss": (lambda x, t: functional.nll_loss(x.log_softmax(-1), t), _classes),
    "nll_loss_sum": (lambda x, t: functional.nll_loss(x.log_softmax(-1), t, reduction="sum"), _classes),
    "nll_loss_none": (lambda x, t: functional.nll_loss(x.log_softmax(-1), t, reduction="none"), _classes),
    "mse_loss": (functional.mse_loss, lambda n: (_floats(n, 4), _floats(n, 4) + 1)),
    "mse_loss_sum": (
        lambda x, y: functional.mse_loss(x, y, reduction="sum"),
        lambda n: (_floats(n, 4), _floats(n, 4) + 1),
    ),
    "conv_backward": (_convolution_backward(1), lambda n: (_floats(n, 6, 8, 8), *_image(n))),
    "conv_backward_depthwise": (
        _convolution_backward(4),
        lambda n: (_floats(n, 4, 8, 8), _floats(n, 4, 8, 8) + 1, _floats(4, 1, 3, 3)),
    ),
    "conv_backward_groups": (
        _convolution_backward(2),
        lambda n: (_floats(n, 6, 8, 8), _floats(n, 4, 8, 8), _floats(6, 2, 3, 3)),
    ),
    "conv_transpose_backward": (
        _convolution_backward(1, transposed=True),
        lambda n: (_floats(n, 6, 8, 8), _floats(n, 4, 8, 8), _floats(4, 6, 3, 3)),
    ),
    **{f"embedding_bag_gradients of mode {mode}": (_bag_gradients(mode), _bags) for mode in range(3)},
    "log_sigmoid_gradient": (
        lambda x, y: aten.log_sigmoid_backward(y, x, aten.log_sigmoid_forward(x)[1]),
        lambda n: (_floats(n, 4), _floats(n, 4) + 1),
    ),
    "sums of products of three": (
        lambda x, y, z: aten._trilinear(x, y, z, [1, 3], [0], [1, 2], [2, 3]),
        lambda n: (_floats(n, 4), _floats(6, 4, 6), _floats(n, 6)),
    ),
    "instance_norm": (
        lambda x, w: functional.instance_norm(x, weight=w, bias=w + 1),
        lambda n: (_floats(n, 4, 3, 3), _floats(4)),
    ),
    "pixel_shuffle": (lambda x: functional.pixel_shuffle(x, 2), lambda n: (_floats(n, 8, 2, 3),)),
    "pixel_unshuffle": (lambda x: functional.pixel_unshuffle(x, 2), lambda n: (_floats(n, 2, 4, 6),)),
    "embedding_bag": (lambda t, i: functional.embedding_bag(i, t, mode="mean"), _table),
    "embedding_bag_max": (lambda t, i: functional.embedding_bag(i, t, mode="max"), _table),
    "lstm_cell": (
        lambda x, h, w, u: torch.lstm_cell(x, (h, h + 1), w, u),
        lambda n: (_floats(n, 4), _floats(n, 2), _floats(8, 4), _floats(8, 2)),
    ),
    "lstm": (
        lambda x, h, w, u: torch.lstm(x, (h, h + 1), [w, u], False, 1, 0.0, False, False, True),
        lambda n: (_floats(n, 3, 4), _floats(1, n, 2), _floats(8, 4), _floats(8, 2)),
    ),
    "gru": (
        lambda x, h, w, u: torch.gru(x, h, [w, u], False, 1, 0.0, False, False, False),
        lambda n: (_floats(3, n, 4), _floats(1, n, 2), _floats(6, 4), _floats(6, 2)),
    ),
    "bucketize": (lambda x, b: torch.bucketize(x, b.sort()[0]), _pair),
    "cross product whose parts have size 3, too": (torch.cross, lambda n: (_floats(n, 3, 6), _floats(n, 3, 6) + 1)),
    **{
        f"{name} of uneven rows": (call, lambda n: (_floats(n, 4), (_floats(n, 4).abs() * 2).long().clamp(max=3)[:, 0]))
        for name, call in {
            "nll_loss_forward": lambda x, t: aten.nll_loss_forward(x.log_softmax(1), t, None, 1, -100),
            "cross_entropy": lambda x, t: functional.cross_entropy(x, t, label_smoothing=0.1, reduction="sum"),
            "multi_margin": lambda x, t: functional.multi_margin_loss(x, t, reduction="sum"),
        }.items()
    },
    "bce_with_logits": (
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="sum"),
        lambda n: (_floats(n, 4), _floats(n, 4) + 1),
    ),
    "triplet": (
        lambda x, y: functional.triplet_margin_loss(x, y, x.flip(1), reduction="sum"),
        lambda n: (_floats(n, 4), _floats(n, 4) + 1),
    ),
    "one channel of pixels": (lambda x: functional.pixel_shuffle(x, 2), lambda n: (_floats(n, 4, 2, 3),)),
    "kron of one": (torch.kron, lambda n: (_floats(1, 1), _floats(1, n))),
    "kron": (torch.kron, lambda n: (_floats(n, 4), _floats(2, n))),
    "cartesian_prod": (torch.cartesian_prod, lambda n: (_floats(n), _floats(4))),
    "multi_dot": (lambda *a: torch.linalg.multi_dot(a), lambda n: (_floats(4, n), _floats(n, 4), _floats(4, n))),
    "bilinear": (functional.bilinear, lambda n: (_floats(n, 4), _floats(n, 6), _floats(6, 4, 6))),
    "quantiles": (lambda x: torch.quantile(x, torch.tensor([0.2, 0.7]), 0), _square),
    "stft": (
        lambda x: torch.view_as_real(torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True)),
        lambda n: (_floats(n, 40),),
    ),
    "lu_solve": (
        lambda x, y: torch.linalg.lu_solve(*torch.linalg.lu_factor(x @ x.mT + torch.eye(4)), y),
        lambda n: (_floats(n, 4, 4), _floats(n, 4, n)),
    ),
    "affine_grid": (lambda x: functional.affine_grid(x, [x.shape[0], 1, 4, 6]), lambda n: (_floats(n, 2, 3),)),
    "cross_entropy of chances": (
        lambda x, y: functional.cross_entropy(x, y.softmax(1), reduction="sum"),
        lambda n: (_floats(n, 4), _floats(n, 4) + 1),
    ),
    "elements in memory": (lambda x: torch.as_strided(x.clone(), (2, 6), (3, 1), 2), _square),
}
if find_spec("transformers"):
    OTHERS["grouped_backward"] = (
        lambda x, w, ends, grad: torch.ops.transformers.grouped_mm_fallback_backward(x, w, ends, grad),
        _grouped,
    )
    OTHERS["grouped"] = (
        lambda x, w, ends: torch.ops.transformers.grouped_mm_fallback(x, w, ends),
        lambda n: _grouped(n)[:3],
    )
CASES: dict[str, Case] = {**{name: (call, _square) for name, call in UNARY.items()}, **OTHERS}
