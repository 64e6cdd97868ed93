"""Indexing maps of ops that combine elements: reductions, dot products, windows."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.composition import compose, without_unused_symbols
from shardy_py.indexing.expressions import (
    Expression,
    dim,
    symbol,
)
from shardy_py.indexing.indexing_map import IndexingMap, bounds_of
from shardy_py.indexing.op_maps.data_movement import pad
from shardy_py.values import frozen

Shape = Sequence[int]


def reduce(output: Shape, shape: Shape, dimensions: Sequence[int]) -> IndexingMap:
    """Return the map of an operand of a reduction: one symbol per reduced dimension, in their order.

    Args:
        output: The shape of the result.
        shape: The shape of the operand.
        dimensions: The reduced dimensions.
    """
    reduced = sorted(dimensions)
    result_dims = [number for number in range(len(shape)) if number not in reduced]
    results = (
        symbol(reduced.index(number)) if number in reduced else dim(result_dims.index(number))
        for number in range(len(shape))
    )
    return IndexingMap.of_shape(output, results, ranges=bounds_of(shape[number] for number in reduced))


def reduce_to_output(shape: Shape, dimensions: Sequence[int]) -> IndexingMap:
    """Return the map from an operand's index to that of the result of a reduction."""
    return IndexingMap.of_shape(shape, (dim(number) for number in range(len(shape)) if number not in dimensions))


@frozen(kw_only=True)
class DotDimensions:
    """Dimension numbers of a dot product.

    Args:
        lhs_batch: The batch dimensions of the left operand.
        rhs_batch: Those of the right one.
        lhs_contracting: The dimensions of the left operand that are summed over.
        rhs_contracting: Those of the right one.
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]


def dot(output: Shape, lhs: Shape, rhs: Shape, numbers: DotDimensions) -> tuple[IndexingMap, IndexingMap]:
    """Return the maps of both operands of a dot product: one symbol per contracted dimension."""
    batch = len(numbers.lhs_batch)
    lhs_free = len(lhs) - batch - len(numbers.lhs_contracting)
    ranges = bounds_of(lhs[number] for number in numbers.lhs_contracting)

    def operand(rank: int, batches: tuple[int, ...], contracting: tuple[int, ...], first_free: int) -> IndexingMap:
        free = [number for number in range(rank) if number not in batches and number not in contracting]
        results: dict[int, Expression] = {number: dim(position) for position, number in enumerate(batches)}
        results |= {number: symbol(position) for position, number in enumerate(contracting)}
        results |= {number: dim(first_free + position) for position, number in enumerate(free)}
        return IndexingMap.of_shape(output, (results[number] for number in range(rank)), ranges=ranges)

    return (
        operand(len(lhs), numbers.lhs_batch, numbers.lhs_contracting, batch),
        operand(len(rhs), numbers.rhs_batch, numbers.rhs_contracting, batch + lhs_free),
    )


@frozen(kw_only=True)
class SlidingWindow:
    """A window that slides over an operand, one entry per dimension.

    Args:
        size: The number of elements.
        strides: The steps of the window.
        window_dilations: The distance between its elements.
        base_dilations: The distance that the operand's elements are moved apart to.
        low: The padding before the operand.
        high: The padding behind it.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    window_dilations: tuple[int, ...]
    base_dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


def reduce_window(output: Shape, shape: Shape, window: SlidingWindow) -> IndexingMap:
    """Return the map of an operand of a windowed reduction: one symbol per window dimension above size one."""
    dilated = [(size - 1) * step + 1 if size else 0 for size, step in zip(shape, window.base_dilations, strict=True)]
    padded = [low + size + high for low, size, high in zip(window.low, dilated, window.high, strict=True)]
    results = (
        canonicalize(dim(number) * stride + symbol(number) * dilation)
        for number, (stride, dilation) in enumerate(zip(window.strides, window.window_dilations, strict=True))
    )
    sliding = IndexingMap.of_shape(output, results, ranges=bounds_of(window.size))
    interior = tuple(step - 1 for step in window.base_dilations)
    return without_unused_symbols(compose(sliding, pad(padded, window.low, window.high, interior)))
