"""Rules of linalg and tensor against arithmetic: an op on shards gives the shards of the op."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

import numpy as np

import shardy_py as sdy
from shardy_py.testing import assert_rule_holds, assert_runs_sharded, make_op
from tests.unit.dialects.linalg.test_linalg import REGISTRY
from tests.unit.dialects.linalg.test_windows import steps

CONVOLUTIONS = [
    ("conv_1d_nwc_wcf", (2, 6, 4), (3, 4, 2), (2, 4, 2), 1),
    ("conv_2d_nhwc_hwcf", (2, 4, 6, 4), (1, 3, 4, 6), (2, 4, 4, 6), 1),
    ("conv_2d_nchw_fchw", (2, 4, 4, 6), (6, 4, 3, 3), (2, 6, 2, 4), 1),
    ("conv_2d_ngchw_gfchw", (2, 4, 2, 4, 4), (4, 6, 2, 3, 3), (2, 4, 6, 2, 2), 1),
    ("depthwise_conv_2d_nhwc_hwc", (2, 4, 4, 6), (3, 3, 6), (2, 2, 2, 6), 1),
    ("depthwise_conv_2d_nhwc_hwcm", (2, 4, 4, 6), (3, 3, 6, 2), (2, 2, 2, 6, 2), 1),
    ("conv_2d_nhwc_hwcf", (2, 9, 9, 4), (3, 3, 4, 6), (2, 4, 4, 6), 2),
    ("conv_2d_nhwc_hwcf", (2, 8, 8, 4), (2, 2, 4, 6), (2, 4, 4, 6), 2),
    ("pooling_nhwc_sum", (2, 8, 8, 4), (2, 2), (2, 4, 4, 4), 2),
    ("pooling_ncw_sum", (2, 4, 8), (3,), (2, 4, 6), 1),
]


def convolution(name, side_by_side, stride):
    """Return what an op computes by its letters: patches times kernel, summed over what the result lacks."""
    _, source, kernel_letters = name.rsplit("_", 2) if "conv" in name else ("", name.split("_")[1], "")
    space = [letter for letter in source if letter in "dhw"]
    kernel_letters = kernel_letters or "".join(space)
    result = source.replace("c", "f") if "f" in kernel_letters else source + "m" * ("m" in kernel_letters)
    inside = "".join(letter.upper() if letter in "dhw" else letter for letter in kernel_letters)
    axes = tuple(map(source.index, space))

    def convolve(image, kernel, out):
        kernel = np.ones(kernel.shape) if "pooling" in name else kernel
        window = {letter: kernel.shape[kernel_letters.index(letter)] for letter in space}
        patches = np.lib.stride_tricks.sliding_window_view(image, tuple(window.values()), axis=axes)
        # Where windows lie side by side, those of a shard do, too, however short they are there.
        moves = [(window[item] if side_by_side else stride) if item in space else 1 for item in source]
        patches = patches[tuple(slice(None, None, move) for move in moves)]
        return np.einsum(f"{source}{''.join(space).upper()},{inside}->{result}", patches, kernel)

    return convolve


@pytest.mark.parametrize(("name", "image", "kernel", "result", "stride"), CONVOLUTIONS)
def test_convolutions(name, image, kernel, result, stride) -> None:
    """Batch, filters, groups and multipliers are free, channels and windows side by side are summed."""
    side_by_side = stride == kernel[0] > 1
    op = make_op(f"linalg.{name}", [image, kernel, result], [result], {"strides": steps(stride)})
    assert_rule_holds(op, convolution(name, side_by_side, stride), registry=REGISTRY, allow_missing=True)


def rows(image, out):
    """Sum along rows."""
    return image.sum(1)


CASES = [
    ("linalg.matmul", [(4, 6), (6, 8), (4, 8)], (4, 8), {}, lambda x, y, out: x @ y),
    ("linalg.batch_matmul", [(2, 4, 6), (2, 6, 8), (2, 4, 8)], (2, 4, 8), {}, lambda x, y, out: x @ y),
    ("linalg.matvec", [(4, 6), (6,), (4,)], (4,), {}, lambda x, y, out: x @ y),
    ("linalg.vecmat", [(6,), (6, 4), (4,)], (4,), {}, lambda x, y, out: x @ y),
    ("linalg.batch_vecmat", [(2, 6), (2, 6, 4), (2, 4)], (2, 4), {}, lambda x, y, out: np.einsum("bk,bkn->bn", x, y)),
    ("linalg.dot", [(6,), (6,), ()], (), {}, lambda x, y, out: x @ y),
    (
        "linalg.mmt4d",
        [(2, 4, 2, 6), (4, 4, 2, 6), (2, 4, 2, 2)],
        (2, 4, 2, 2),
        {},
        lambda x, y, out: np.einsum("acdf,bcef->abde", x, y),
    ),
    (
        "linalg.transpose",
        [(4, 6, 2), (2, 4, 6)],
        (2, 4, 6),
        {"permutation": (2, 0, 1)},
        lambda x, out: x.transpose(2, 0, 1),
    ),
    ("linalg.reduce", [(4, 6, 2), (4, 2)], (4, 2), {"dimensions": (1,)}, rows),
    ("linalg.matmul_transpose_a", [(6, 4), (6, 8), (4, 8)], (4, 8), {}, lambda x, y, out: x.T @ y),
    ("linalg.matmul_transpose_b", [(4, 6), (8, 6), (4, 8)], (4, 8), {}, lambda x, y, out: x @ y.T),
    (
        "linalg.batch_matmul_transpose_a",
        [(2, 6, 4), (2, 6, 8), (2, 4, 8)],
        (2, 4, 8),
        {},
        lambda x, y, out: np.einsum("bkm,bkn->bmn", x, y),
    ),
    (
        "linalg.batch_matmul_transpose_b",
        [(2, 4, 6), (2, 8, 6), (2, 4, 8)],
        (2, 4, 8),
        {},
        lambda x, y, out: np.einsum("bmk,bnk->bmn", x, y),
    ),
    (
        "linalg.batch_reduce_matmul",
        [(2, 4, 6), (2, 6, 8), (4, 8)],
        (4, 8),
        {},
        lambda x, y, out: np.einsum("bmk,bkn->mn", x, y),
    ),
    (
        "linalg.batch_mmt4d",
        [(2, 2, 4, 2, 6), (2, 4, 4, 2, 6), (2, 2, 4, 2, 2)],
        (2, 2, 4, 2, 2),
        {},
        lambda x, y, out: np.einsum("zacdf,zbcef->zabde", x, y),
    ),
    (
        "linalg.quantized_matmul",
        [(4, 6), (6, 8), (), (), (4, 8)],
        (4, 8),
        {},
        lambda x, y, p, q, out: (x - p) @ (y - q),
    ),
    (
        "linalg.contract",
        [(6, 4), (8, 6), (8, 4)],
        (8, 4),
        {"indexing_maps": tuple(f"(a, b, c) -> ({text})" for text in ("c, b", "a, c", "a, b"))},
        lambda x, y, out: y @ x,
    ),
    ("linalg.add", [(4, 6)] * 3, (4, 6), {}, lambda x, y, out: x + y),
    (
        "linalg.elementwise",
        [(4, 6), (6, 4), (4, 6)],
        (4, 6),
        {"indexing_maps": tuple(f"(a, b) -> ({text})" for text in ("a, b", "b, a", "a, b"))},
        lambda x, y, out: x - y.T,
    ),
    ("tensor.bitcast", [(4, 6)], (4, 6), {}, lambda x: x),
    ("math.exp", [(4, 6)], (4, 6), {}, np.exp),
    ("tensor.extract_slice", [(8, 6)], (4, 6), {"static_sizes": (4, 6)}, lambda x: x[:4]),
    ("tensor.extract_slice", [(8, 6, 2)], (6, 2), {"static_sizes": (1, 6, 2)}, lambda x: x[3]),
]


@pytest.mark.parametrize(("name", "operands", "result", "attributes", "function"), CASES)
def test_ops(name, operands, result, attributes, function) -> None:
    """No factor is wrong, and none is missing."""
    assert_rule_holds(make_op(name, operands, [result], attributes), function, registry=REGISTRY)


@pytest.mark.parametrize(
    ("name", "operand", "result", "groups"),
    [
        ("tensor.collapse_shape", (2, 4, 6), (8, 6), ((0, 1), (2,))),
        ("tensor.collapse_shape", (2, 1, 4), (8,), ((0, 1, 2),)),
        ("tensor.expand_shape", (8, 6), (2, 4, 6), ((0, 1), (2,))),
        ("tensor.expand_shape", (8,), (2, 2, 2), ((0, 1, 2),)),
    ],
)
def test_regrouping(name, operand, result, groups) -> None:
    """The factors of a compound are those of the dimensions that are joined, major first."""

    def reshape(x, local):
        return x.reshape(local.results[0].shape)

    op = make_op(name, [operand], [result], {"reassociation": groups})
    assert_rule_holds(op, reshape, registry=REGISTRY)


def test_softmax() -> None:
    """Rows are free; along a row everything depends on everything."""

    def softmax(x, out):
        return np.exp(x) / np.exp(x).sum(1, keepdims=True)

    op = make_op("linalg.softmax", [(4, 6), (4, 6)], [(4, 6)], {"dimension": 1})
    report = assert_rule_holds(op, softmax, registry=REGISTRY, allow_missing=True)
    assert str(report.rule) == "<([i, k], [i, j])->([i, j]) {i=4, j=6, k=1} need_replication={j}>"


TILES = {"inner_dims_pos": (1, 0), "static_inner_tiles": (3, 2), "outer_dims_perm": (1, 0)}
"""Tiles of 2 rows and 3 columns, side by side along columns first."""


def pack(x, out):
    """Return tiles: their column and row, then the columns and rows inside."""
    rows, columns = x.shape
    return x.reshape(rows // 2, 2, columns // 3, 3).transpose(2, 0, 3, 1)


def unpack(x, out):
    """Return the tensor of tiles."""
    columns, rows, *_ = x.shape
    return x.transpose(1, 3, 0, 2).reshape(rows * 2, columns * 3)


@pytest.mark.parametrize(
    ("kind", "function", "operand", "result"),
    [("pack", pack, (8, 12), (4, 4, 3, 2)), ("unpack", unpack, (4, 4, 3, 2), (8, 12))],
)
def test_packing(kind, function, operand, result) -> None:
    """Tiles are sharded as what they are cut from; shards of whole tiles stay where they are."""
    op = make_op(f"linalg.{kind}", [operand, result], [result], TILES)
    assert_rule_holds(op, function, registry=REGISTRY, allow_missing=True)
    builder = sdy.Builder()
    with builder.function("main", [value.type for value in op.operands]) as values:
        builder.return_(builder.op(op.name, values, [op.result.type], **TILES))
    run = assert_runs_sharded(
        builder.program, {op.name: function}, {"d": 2, "m": 2}, in_shardings={0: ("d", "m")}, registry=REGISTRY
    )
    assert run.collectives == ()


def test_a_packing_with_padding_needs_dimensions_whole() -> None:
    """Five rows fill two tiles of three rows and one is left over."""
    tiles = {"inner_dims_pos": (0,), "static_inner_tiles": (3,)}
    op = make_op("tensor.pack", [(5, 8), (2, 8, 3)], [(2, 8, 3)], tiles)
    rule = REGISTRY.get_sharding_rule(op)
    assert str(rule) == "<([i, l], [j, l, k])->([j, l, k]) {i=5, j=2, k=3, l=8} need_replication={i, j, k}>"
