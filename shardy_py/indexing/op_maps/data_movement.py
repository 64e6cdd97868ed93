"""Indexing maps of ops that move elements, or read them at indices of the running program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.composition import simplify
from shardy_py.indexing.expressions import (
    ZERO,
    Constant,
    Expression,
    dim,
    runtime,
    symbol,
)
from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval, bounds_of

Shape = Sequence[int]


def identity(shape: Shape) -> IndexingMap:
    """Return the map of an operand that is read at the index of the result."""
    return IndexingMap.of_shape(shape, (dim(number) for number in range(len(shape))))


def scalar(shape: Shape) -> IndexingMap:
    """Return the map from a result's index to a scalar operand: no indices."""
    return IndexingMap.of_shape(shape, ())


def broadcast(output: Shape, dimensions: Sequence[int], shape: Shape = ()) -> IndexingMap:
    """Return the map of an operand whose dimensions lie along some of the result's.

    Args:
        output: The shape of the result.
        dimensions: The dimension of the result, per dimension of the operand.
        shape: The shape of the operand, where dimensions of size one may be expanded: these are read at 0.
    """
    sizes = shape or [output[number] for number in dimensions]
    return IndexingMap.of_shape(
        output,
        (dim(number) if size == output[number] else ZERO for number, size in zip(dimensions, sizes, strict=True)),
    )


def broadcast_to_output(shape: Shape, output: Shape, dimensions: Sequence[int]) -> IndexingMap:
    """Return the map from an operand's index to its indices in the result.

    There is one symbol per dimension of the result that is new or expanded.
    """
    source_dims = {
        number: source_dim for source_dim, number in enumerate(dimensions) if shape[source_dim] == output[number]
    }
    added = [number for number in range(len(output)) if number not in source_dims]
    results: list[Expression] = [
        dim(source_dims[number]) if number in source_dims else symbol(added.index(number))
        for number in range(len(output))
    ]
    return IndexingMap.of_shape(shape, results, ranges=bounds_of(output[number] for number in added))


def transpose(output: Shape, permutation: Sequence[int]) -> IndexingMap:
    """Return the map of the operand of a transpose; ``permutation[i]`` is the operand's dimension of result's ``i``."""
    source_dims = list(permutation)
    return IndexingMap.of_shape(output, (dim(source_dims.index(number)) for number in range(len(output))))


def transpose_to_output(shape: Shape, permutation: Sequence[int]) -> IndexingMap:
    """Return the map from an operand's index to that of the result of a transpose."""
    return IndexingMap.of_shape(shape, (dim(number) for number in permutation))


def slice_(output: Shape, starts: Shape, strides: Shape) -> IndexingMap:
    """Return the map of the operand of a slice: ``d * stride + start``."""
    results = (
        _affine(number, stride, start) for number, (start, stride) in enumerate(zip(starts, strides, strict=True))
    )
    return IndexingMap.of_shape(output, results)


def slice_to_output(shape: Shape, output: Shape, starts: Shape, strides: Shape) -> IndexingMap:
    """Return the map from an operand's index to that of the result of a slice, where the slice takes it."""
    results, dims, constraints = [], [], []
    for number, (size, start, stride) in enumerate(zip(output, starts, strides, strict=True)):
        shifted = _affine(number, 1, -start)
        dims.append(Bound(Interval(start, start + (size - 1) * stride)))
        results.append(canonicalize(shifted // stride))
        if stride > 1:
            constraints.append((canonicalize(shifted % stride), Interval(0, 0)))
    return simplify(IndexingMap(tuple(results), tuple(dims)).with_constraints(constraints), fold_points=False)


def reverse(shape: Shape, dimensions: Sequence[int]) -> IndexingMap:
    """Return the map of the operand of a reverse, which is its own inverse."""
    results = (
        _affine(number, -1, size - 1) if number in dimensions else dim(number) for number, size in enumerate(shape)
    )
    return IndexingMap.of_shape(shape, results)


def pad(output: Shape, low: Shape, high: Shape, interior: Shape) -> IndexingMap:
    """Return the map of the operand of a pad, where the result takes an element of it."""
    results, dims, constraints = [], [], []
    for number, size in enumerate(output):
        shifted, step = _affine(number, 1, -low[number]), interior[number] + 1
        dims.append(Bound(Interval(max(0, low[number]), size - 1 - max(0, high[number]))))
        results.append(canonicalize(shifted // step))
        if step > 1:
            constraints.append((canonicalize(shifted % step), Interval(0, 0)))
    return IndexingMap(tuple(results), tuple(dims)).with_constraints(constraints)


def concatenate(output: Shape, dimension: int, offset: int, size: int) -> IndexingMap:
    """Return the map of one operand of a concatenate, where the result takes its elements from it.

    Args:
        output: The shape of the result.
        dimension: The dimension along which operands follow each other.
        offset: Where the operand begins there.
        size: How long it is there.
    """
    dims = list(bounds_of(output))
    dims[dimension] = Bound(Interval(offset, offset + size - 1))
    results = [_affine(number, 1, -offset) if number == dimension else dim(number) for number in range(len(output))]
    folded = [
        Constant(bound.interval.lower - (offset if number == dimension else 0)) if bound.interval.is_point else result
        for number, (bound, result) in enumerate(zip(dims, results, strict=True))
    ]
    return IndexingMap(tuple(folded), tuple(dims))


def concatenate_to_output(shape: Shape, dimension: int, offset: int) -> IndexingMap:
    """Return the map from an operand's index to that of the result of a concatenate."""
    results = (_affine(number, 1, offset if number == dimension else 0) for number in range(len(shape)))
    return IndexingMap.of_shape(shape, results)


def _affine(number: int, factor: int, offset: int) -> Expression:
    return canonicalize(dim(number) * factor + offset)


def dynamic_slice(output: Shape, shape: Shape) -> IndexingMap:
    """Return the map of the operand of a dynamic slice: a run-time variable per dimension is its clamped start."""
    results = (dim(number) + runtime(number) for number in range(len(output)))
    starts = tuple(Bound(Interval(0, size - slice_size)) for size, slice_size in zip(shape, output, strict=True))
    return IndexingMap.of_shape(output, results, runtimes=starts)


def dynamic_update(output: Shape, update: Shape) -> IndexingMap:
    """Return the map of the update of a dynamic update: a run-time variable per dimension is its clamped start."""
    results = (dim(number) - runtime(number) for number in range(len(output)))
    starts = tuple(Bound(Interval(0, size - update_size)) for size, update_size in zip(output, update, strict=True))
    return IndexingMap.of_shape(output, results, runtimes=starts)


def gather(
    output: Shape,
    shape: Shape,
    slice_sizes: Shape,
    start_index_map: Sequence[int],
    *,
    window_dims: Mapping[int, int] | None = None,
    batch_dims: Mapping[int, int] | None = None,
    operand_batch_dims: Mapping[int, int] | None = None,
    index_vector_dim: int | None = 1,
    indices_rank: int = 2,
) -> tuple[IndexingMap, IndexingMap]:
    """Return the maps of the operand and the indices of a gather.

    By default it has the canonical form: the indices are a matrix (n, k); dimension 0 of the result counts them, the
    others are the whole slice.

    Args:
        output: The shape of the result.
        shape: The shape of the operand.
        slice_sizes: The shape of the slice.
        start_index_map: The operand's dimension of every component of an index.
        window_dims: Per dimension of the operand that of the result that runs over the slice; without an entry the
            slice has one element along it.
        batch_dims: Per dimension of the indices, but that of the components, that of the result that counts it.
        operand_batch_dims: Per dimension of the operand that of the result along which both are batched.
        index_vector_dim: The dimension of the components of an index, or None where an element is an index.
        indices_rank: The number of dimensions of the indices.
    """
    if window_dims is None:
        window_dims, batch_dims = {number: number + 1 for number in range(len(shape))}, {0: 0}
    indexed_dims = list(start_index_map)

    def operand_index(number: int) -> Expression:
        source = window_dims.get(number, (operand_batch_dims or {}).get(number))
        offset: Expression = Constant(0) if source is None else dim(source)
        if number not in indexed_dims:
            return offset
        start = runtime(indexed_dims.index(number))
        return start if source is None else offset + start

    starts = tuple(Bound(Interval(0, shape[number] - slice_sizes[number])) for number in indexed_dims)
    operand = IndexingMap.of_shape(output, map(operand_index, range(len(shape))), runtimes=starts)
    places = batch_dims or {}
    index = (symbol(0) if number == index_vector_dim else dim(places[number]) for number in range(indices_rank))
    ranges = () if index_vector_dim is None else bounds_of((len(indexed_dims),))
    return operand, IndexingMap.of_shape(output, index, ranges=ranges)
