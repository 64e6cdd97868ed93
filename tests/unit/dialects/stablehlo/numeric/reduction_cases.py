"""Reductions, of whole dimensions and of windows, sorting, and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from shardy_py.ir.graph.attributes import DenseElements
from tests.unit.dialects.stablehlo.numeric.case import Case, booleans

COLUMNS = np.broadcast_to(np.arange(6), (4, 6))
APART = "windows that do not overlap need no neighbours; the reference does not tell them apart"
STATISTICS = "no kind says that the statistics of a sharded batch take an all-reduce inside the op"


def best(x: Any, index: Any, *inits: Any) -> Any:
    """The largest of a row and where it is."""
    where = x.argmax(1)[:, None]
    return np.take_along_axis(x, where, 1)[:, 0], np.take_along_axis(index, where, 1)[:, 0]


def better(first: Any, other: Any) -> Any:
    """The larger of two, each with where it is."""
    return tuple(np.where(first[0] >= other[0], left, right) for left, right in zip(first, other, strict=True))


def windows_along_rows(size: int, stride: int = 1, low: int = 0, high: int = 0) -> Any:
    """Sums over windows of columns."""

    def function(x: Any, init: Any) -> Any:
        padded = np.pad(x, ((0, 0), (low, high)), constant_values=init)
        return sliding_window_view(padded, size, axis=1)[:, ::stride].sum(-1)

    return function


def select_and_scatter(x: Any, source: Any, init: Any) -> Any:
    """Each source element goes to the largest of its pair of columns."""
    pairs = x.reshape(len(x), -1, 2)
    chosen = pairs == pairs.max(-1, keepdims=True)
    return (np.where(chosen, source[..., None], 0) + init).reshape(x.shape)


def sort_by_first(keys: Any, values: Any) -> Any:
    """Sort rows of two arrays by the first."""
    order = np.argsort(keys, 1)
    return np.take_along_axis(keys, order, 1), np.take_along_axis(values, order, 1)


def normalize(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    """Batch normalization with given statistics."""
    return (x - mean) / np.sqrt(np.abs(variance) + 1e-3) * scale + offset


def normalize_in_training(x: Any, scale: Any, offset: Any) -> Any:
    """Batch normalization, and its statistics."""
    mean, variance = x.mean(0), x.var(0)
    return normalize(x, scale, offset, mean, variance), mean, variance


def normalize_gradient(x: Any, scale: Any, mean: Any, variance: Any, gradient: Any) -> Any:
    """The gradients of a batch normalization."""
    factor = scale / np.sqrt(np.abs(variance) + 1e-3)
    by_offset = gradient.sum(0)
    by_scale = (gradient * (x - mean)).sum(0)
    return factor * (gradient - by_offset / len(x)), by_scale, by_offset


ROWS, WINDOWS = {"dimensions": (1,)}, "window_dimensions"
FROM_END = "the reference compares the number of the dimension as it is written"

CASES = [
    Case("reduce", [(4, 6, 2), np.array(0.0)], lambda x, init: x.sum(1) + init, attributes=ROWS),
    Case("reduce", [(4, 6), np.array(-9.0)], lambda x, init: x.max(1), attributes=ROWS, combine=np.maximum),
    Case("reduce", [booleans(4, 6), np.array(False)], lambda x, init: x.any(1), attributes=ROWS),
    Case("reduce", [(4, 6), COLUMNS, np.array(-9.0), np.array(0)], best, attributes=ROWS, combine=better),
    Case("reduce_window", [(4, 6), np.array(0.0)], windows_along_rows(1), attributes={WINDOWS: (1, 1)}),
    Case(
        "reduce_window",
        [(4, 6), np.array(0.0)],
        windows_along_rows(3, 1, 1, 1),
        attributes={WINDOWS: (1, 3), "padding": DenseElements((2, 2), (0, 0, 1, 1))},
    ),
    Case(
        "reduce_window",
        [(4, 6), np.array(0.0)],
        windows_along_rows(2, 2),
        attributes={WINDOWS: (1, 2), "window_strides": (1, 2)},
        missing={"operand 0 dim 1 ([3]x2), result 0 dim 1": APART},
    ),
    Case(
        "select_and_scatter",
        [(4, 8), (4, 4), np.array(0.0)],
        select_and_scatter,
        attributes={WINDOWS: (1, 2), "window_strides": (1, 2)},
        missing={"operand 0 dim 1 ([4]x2), operand 1 dim 1, result 0 dim 1 ([4]x2)": APART},
    ),
    Case("sort", [(4, 6)], lambda x: np.sort(x, 1), attributes={"dimension": 1}),
    Case("sort", [(4, 6)], lambda x: np.sort(x, 1), attributes={"dimension": -1}, wrong={"j": FROM_END}),
    Case("sort", [(4, 6), (4, 6)], sort_by_first, attributes={"dimension": 1}),
    Case("batch_norm_inference", [(4, 6), *[(6,)] * 4], normalize, attributes={"feature_index": 1}),
    Case(
        "batch_norm_training",
        [(4, 6), (6,), (6,)],
        normalize_in_training,
        attributes={"feature_index": 1},
        wrong={"i": STATISTICS},
    ),
    Case(
        "batch_norm_grad",
        [(4, 6), *[(6,)] * 3, (4, 6)],
        normalize_gradient,
        attributes={"feature_index": 1},
        wrong={"i": STATISTICS},
    ),
]
