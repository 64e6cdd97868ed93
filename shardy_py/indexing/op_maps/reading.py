"""Maps of ops that read at indices of the running program."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.indexing.expressions import (
    dim,
    runtime,
    symbol,
)
from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval, bounds_of

Shape = Sequence[int]


def dynamic_slice(output: Shape, shape: Shape) -> IndexingMap:
    """Return the map of the operand of a dynamic slice: a run-time variable per dimension is its clamped start."""
    results = (dim(number) + runtime(number) for number in range(len(output)))
    starts = tuple(Bound(Interval(0, size - own)) for size, own in zip(shape, output, strict=True))
    return IndexingMap.of_shape(output, results, runtimes=starts)


def dynamic_update(output: Shape, update: Shape) -> IndexingMap:
    """Return the map of the update of a dynamic update: a run-time variable per dimension is its clamped start."""
    results = (dim(number) - runtime(number) for number in range(len(output)))
    starts = tuple(Bound(Interval(0, size - own)) for size, own in zip(output, update, strict=True))
    return IndexingMap.of_shape(output, results, runtimes=starts)


def gather(
    output: Shape, shape: Shape, slice_sizes: Shape, start_index_map: Sequence[int]
) -> tuple[IndexingMap, IndexingMap]:
    """Return the maps of the operand and the indices of a gather in its canonical form.

    Its indices are a matrix (n, k); dimension 0 of the result counts them, the others are the whole slice.

    Args:
        output: The shape of the result: n, then the slice.
        shape: The shape of the operand.
        slice_sizes: The shape of the slice.
        start_index_map: The operand's dimension of every column of the indices.
    """
    places = list(start_index_map)
    results = (
        dim(number + 1) + runtime(places.index(number)) if number in places else dim(number + 1)
        for number in range(len(shape))
    )
    starts = tuple(Bound(Interval(0, shape[number] - slice_sizes[number])) for number in places)
    operand = IndexingMap.of_shape(output, results, runtimes=starts)
    indices = IndexingMap.of_shape(output, (dim(0), symbol(0)), ranges=bounds_of((len(places),)))
    return operand, indices
