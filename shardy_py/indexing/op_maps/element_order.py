"""Indexing maps between shapes with the same elements in the same order: offsets in memory, reshapes, bitcasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.composition import results_at, simplify
from shardy_py.indexing.expressions import (
    Constant,
    Expression,
    dim,
)
from shardy_py.indexing.indexing_map import IndexingMap
from shardy_py.indexing.op_maps.data_movement import transpose, transpose_to_output

Shape = Sequence[int]


_FEW_DIMS = 64
"""The largest rank of which dimensions of size 1 are part of sums of indices."""


def strides_of(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a shape, the last dimension varying fastest."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else ()


def linearized(index: Sequence[Expression], shape: Shape) -> Expression:
    """Return the linear offset of an index in a tensor, the last dimension varying fastest."""
    total: Expression = Constant(0)
    for expression, size, stride in zip(index, shape, strides_of(shape), strict=True):
        # The only index of a dimension of size 1 is zero. XLA keeps it; the sum of a thousand is nested too deeply.
        if size != 1 or len(shape) <= _FEW_DIMS:
            total = total + expression * stride
    return canonicalize(total)


def delinearized(offset: Expression, shape: Shape, *, in_bounds: bool = True) -> list[Expression]:
    """Return the index of a linear offset in a tensor.

    Args:
        offset: The linear offset, the last dimension varying fastest.
        shape: The shape of the tensor.
        in_bounds: Whether the offset lies in the tensor; then the first dimension of more than one needs no ``mod``.
    """
    indices: list[Expression] = []
    open_ended = in_bounds
    for size, stride in zip(shape, strides_of(shape), strict=True):
        digit = offset // stride
        indices.append(canonicalize(digit if open_ended else digit % size))
        open_ended = open_ended and size == 1
    return indices


def reshape(shape: Shape, other: Shape) -> IndexingMap:
    """Return the map between the indices of two shapes with the same elements in the same order.

    Args:
        shape: The shape whose index is given.
        other: The shape whose index is wanted.

    Raises:
        VerificationError: the shapes have different numbers of elements.
    """
    if prod(shape) != prod(other):
        message = f"{list(shape)} and {list(other)} have different numbers of elements"
        raise VerificationError(Diagnostic("reshape-sizes", message))
    results: list[Expression] = []
    for source, target in _minimal_groups(shape, other):
        index = [dim(number) for number in source]
        sizes = [shape[number] for number in source]
        wanted = [other[number] for number in target]
        if sizes == wanted:
            results += index
        else:
            offset = linearized(index, sizes)
            results += delinearized(offset, wanted)
    return simplify(IndexingMap.of_shape(shape, results), fold_points=False)


def _minimal_groups(shape: Shape, other: Shape) -> Iterator[tuple[range, range]]:
    """Yield the shortest runs of dimensions of both shapes with equal products, then the remaining dimensions."""
    if not prod(shape):
        yield range(len(shape)), range(len(other))
        return
    start = target = 0
    while start < len(shape) and target < len(other):
        end, target_end = start + 1, target + 1
        size, other_size = shape[start], other[target]
        while size != other_size:
            if size < other_size:
                size, end = size * shape[end], end + 1
            else:
                other_size, target_end = other_size * other[target_end], target_end + 1
        yield range(start, end), range(target, target_end)
        start, target = end, target_end
    if start < len(shape) or target < len(other):
        yield range(start, len(shape)), range(target, len(other))


def bitcast(shape: Shape, minor_to_major: Sequence[int], other: Shape, other_order: Sequence[int]) -> IndexingMap:
    """Return the map between the indices of two tensors that are the same memory.

    Args:
        shape: The shape whose index is given.
        minor_to_major: Its dimensions, the one that varies fastest first.
        other: The shape whose index is wanted.
        other_order: Its dimensions in the same order.
    """
    order, target = tuple(reversed(minor_to_major)), tuple(reversed(other_order))
    physical, other_physical = [shape[number] for number in order], [other[number] for number in target]
    to_physical = transpose_to_output(shape, order)
    back = transpose(other_physical, target)
    middle = reshape(physical, other_physical)
    results = compose_raw(compose_raw(to_physical, middle), back)
    return simplify(results, fold_points=False)


def compose_raw(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Compose two maps over the domain of the first, without redundant constraints."""
    return IndexingMap(results_at(second, first.results), first.dims)
