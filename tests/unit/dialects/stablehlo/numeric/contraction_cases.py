"""Contractions and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.unit.dialects.stablehlo.numeric.case import Case

NUMBERS = (
    "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2],"
    " rhs_contracting_dimensions = [0]>"
)
RAGGED = (
    "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],"
    " rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
)
LINE = "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>"
APART = "windows that do not overlap need no neighbours; the reference does not tell them apart"
LARGER_FIRST = "the reference takes the larger of windows and elements of a window for the major part of the image"


def convolve(x: Any, kernel: Any, *, stride: int = 1, low: int = 0, high: int = 0) -> Any:
    """A convolution along a line; the numbers of features say how many groups there are."""
    windows = sliding_window_view(np.pad(x, ((0, 0), (low, high), (0, 0))), len(kernel), axis=1)[:, ::stride]
    groups = x.shape[2] // kernel.shape[1]
    windows = windows.reshape(*windows.shape[:2], groups, kernel.shape[1], len(kernel))
    kernel = kernel.reshape(len(kernel), kernel.shape[1], groups, -1)
    return np.einsum("bsgiw,wigo->bsgo", windows, kernel).reshape(*windows.shape[:2], -1)


def convolve_patches(x: Any, kernel: Any) -> Any:
    """A convolution whose windows do not overlap."""
    return convolve(x, kernel, stride=len(kernel))


def convolve_groups_of_batches(x: Any, kernel: Any, *, local: Any) -> Any:
    """A convolution of each part of the batch with its own output features."""
    groups = x.shape[0] // local.results[0].shape[0]
    parts = zip(np.split(x, groups), np.split(kernel, groups, 2), strict=True)
    return np.concatenate([convolve(part, kernel_part) for part, kernel_part in parts], 2)


def convolve_dynamically(x: Any, kernel: Any, padding: Any) -> Any:
    """A convolution whose padding is an operand."""
    if padding.shape != (1, 2):
        raise ValueError("the padding is needed whole")
    return convolve(x, kernel, low=padding[0, 0], high=padding[0, 1])


def ragged_dot(x: Any, matrices: Any, sizes: Any) -> Any:
    """The rows of each group times the matrix of the group."""
    if sum(sizes) != len(x):
        raise ValueError("the groups do not make up the rows")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = zip(starts[:-1], starts[1:], matrices, strict=True)
    return np.concatenate([x[start:stop] @ matrix for start, stop, matrix in parts])


LINE_ATTRIBUTES = {"dimension_numbers": LINE}
CASES = [
    Case("dot", [(4, 8), (8, 6)], lambda x, y: x @ y),
    Case("dot", [(8,), (8,)], lambda x, y: x @ y),
    Case("dot", [(4, 8), (8,)], lambda x, y: x @ y),
    Case(
        "dot_general",
        [(4, 6, 8), (8, 4, 2)],
        lambda x, y: np.einsum("bmk,kbn->bmn", x, y),
        attributes={"dot_dimension_numbers": NUMBERS},
    ),
    Case(
        "einsum",
        [(4, 6), (6, 8)],
        lambda x, y: np.einsum("ab,bc->ca", x, y),
        attributes={"einsum_config": "ab,bc->ca"},
    ),
    Case("unary_einsum", [(4, 6)], lambda x: x.sum(0), attributes={"einsum_config": "ab->b"}),
    Case(
        "chlo.ragged_dot",
        [(8, 4), (2, 4, 6), np.array([3, 5])],
        ragged_dot,
        attributes={"ragged_dot_dimension_numbers": RAGGED},
    ),
    Case(
        "mhlo.ragged_dot",
        [(8, 4), (2, 4, 6), np.array([3, 5])],
        ragged_dot,
        attributes={"ragged_dot_dimension_numbers": RAGGED.replace("chlo", "mhlo")},
    ),
    Case(
        "convolution",
        [(2, 8, 4), (1, 4, 6)],
        convolve,
        attributes=LINE_ATTRIBUTES,
        missing={"operand 0 dim 1, result 0 dim 1": APART},
    ),
    Case("convolution", [(2, 8, 4), (3, 4, 6)], lambda x, y: convolve(x, y, low=1, high=1), attributes=LINE_ATTRIBUTES),
    Case(
        "convolution",
        [(2, 16, 4), (4, 4, 6)],
        convolve_patches,
        attributes=LINE_ATTRIBUTES,
        missing={"operand 0 dim 1 ([4]x4), result 0 dim 1": APART},
    ),
    Case(
        "convolution",
        [(2, 8, 4), (4, 4, 6)],
        convolve_patches,
        attributes=LINE_ATTRIBUTES,
        wrong={"j": LARGER_FIRST},
        missing={
            "operand 0 dim 1 ([2]x4), result 0 dim 1": APART,
            "operand 0 dim 1 (2x[2]x2), operand 1 dim 0 ([2]x2)": LARGER_FIRST,
            "operand 0 dim 1 (4x[2]), operand 1 dim 0 (2x[2])": LARGER_FIRST,
        },
    ),
    Case(
        "convolution",
        [(2, 8, 12), (3, 3, 8)],
        convolve,
        attributes={**LINE_ATTRIBUTES, "feature_group_count": 4},
    ),
    Case(
        "convolution",
        [(8, 6, 4), (3, 4, 8)],
        convolve_groups_of_batches,
        [(2, 4, 8)],
        {**LINE_ATTRIBUTES, "batch_group_count": 4},
    ),
    Case("dynamic_conv", [(2, 8, 4), (3, 4, 6), np.array([[1, 1]])], convolve_dynamically, attributes=LINE_ATTRIBUTES),
]
