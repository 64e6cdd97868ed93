"""Indexing maps of common kinds of ops, from shapes: which element of an operand an element of a result reads.

Each function is for one kind and one operand; a dialect puts them together for its ops. ``output_to_input`` maps have
the result's dimensions, ``input_to_output`` maps (where they exist) the operand's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from attrs import frozen

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.indexing.canonical import canonicalize
from shardy_py.indexing.compose import compose, without_unused_symbols
from shardy_py.indexing.expressions import (
    ZERO,
    Constant,
    Expression,
    Variable,
    VariableKind,
    dim,
    rewritten,
    runtime,
    symbol,
)
from shardy_py.indexing.indexing_map import Bound, IndexingMap, Interval, bounds_of
from shardy_py.indexing.simplify import simplify

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
    """Return the map from an operand's index to the places where it is in the result.

    There is one symbol per dimension of the result that is new or expanded.
    """
    kept = {number: place for place, number in enumerate(dimensions) if shape[place] == output[number]}
    added = [number for number in range(len(output)) if number not in kept]
    results: list[Expression] = [
        dim(kept[number]) if number in kept else symbol(added.index(number)) for number in range(len(output))
    ]
    return IndexingMap.of_shape(shape, results, ranges=bounds_of(output[number] for number in added))


def transpose(output: Shape, permutation: Sequence[int]) -> IndexingMap:
    """Return the map of the operand of a transpose; ``permutation[i]`` is the operand's dimension of result's ``i``."""
    places = list(permutation)
    return IndexingMap.of_shape(output, (dim(places.index(number)) for number in range(len(output))))


def transpose_to_output(shape: Shape, permutation: Sequence[int]) -> IndexingMap:
    """Return the map from an operand's index to that of the result of a transpose."""
    return IndexingMap.of_shape(shape, (dim(number) for number in permutation))


def strides_of(shape: Shape) -> tuple[int, ...]:
    """Return the distance between neighbours of each dimension, the last one varying fastest."""
    return tuple(accumulate(reversed(shape[1:]), mul, initial=1))[::-1] if shape else ()


def linearized(index: Sequence[Expression], shape: Shape) -> Expression:
    """Return the place of an index in a tensor, the last dimension varying fastest."""
    total: Expression = Constant(0)
    for expression, stride in zip(index, strides_of(shape), strict=True):
        total = total + expression * stride
    return canonicalize(total)


def delinearized(place: Expression, shape: Shape, *, in_bounds: bool = True) -> list[Expression]:
    """Return the index of a place in a tensor.

    Args:
        place: The place, the last dimension varying fastest.
        shape: The shape of the tensor.
        in_bounds: Whether the place lies in the tensor; then the first dimension of more than one needs no ``mod``.
    """
    found: list[Expression] = []
    open_ended = in_bounds
    for size, stride in zip(shape, strides_of(shape), strict=True):
        digit = place // stride
        found.append(canonicalize(digit if open_ended else digit % size))
        open_ended = open_ended and size == 1
    return found


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
    for own, target in _minimal_groups(shape, other):
        index = [dim(number) for number in own]
        sizes = [shape[number] for number in own]
        wanted = [other[number] for number in target]
        if sizes == wanted:
            results += index
        else:
            place = linearized(index, sizes)
            results += delinearized(place, wanted)
    return simplify(IndexingMap.of_shape(shape, results), fold_points=False)


def _minimal_groups(shape: Shape, other: Shape) -> Iterator[tuple[range, range]]:
    """Yield runs of dimensions of both shapes with the same product, as short as possible; then what is left."""
    if not prod(shape):
        yield range(len(shape)), range(len(other))
        return
    start = target = 0
    while start < len(shape) and target < len(other):
        end, target_end = start + 1, target + 1
        one, two = shape[start], other[target]
        while one != two:
            if one < two:
                one, end = one * shape[end], end + 1
            else:
                two, target_end = two * other[target_end], target_end + 1
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
    own, target = tuple(reversed(minor_to_major)), tuple(reversed(other_order))
    physical, other_physical = [shape[number] for number in own], [other[number] for number in target]
    to_physical = transpose_to_output(shape, own)
    back = transpose(other_physical, target)
    middle = reshape(physical, other_physical)
    results = compose_raw(compose_raw(to_physical, middle), back)
    return simplify(results, fold_points=False)


def compose_raw(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """Return one map after another, in the domain of the first, without constraints that hold anyway."""
    values = {Variable(VariableKind.DIM, number): result for number, result in enumerate(first.results)}
    return IndexingMap(tuple(canonicalize(rewritten(item, values)) for item in second.results), first.dims)


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


def reduce(output: Shape, shape: Shape, dimensions: Sequence[int]) -> IndexingMap:
    """Return the map of an operand of a reduction: one symbol per reduced dimension, in their order.

    Args:
        output: The shape of the result.
        shape: The shape of the operand.
        dimensions: The reduced dimensions.
    """
    reduced = sorted(dimensions)
    kept = [number for number in range(len(shape)) if number not in reduced]
    results = (
        symbol(reduced.index(number)) if number in reduced else dim(kept.index(number)) for number in range(len(shape))
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
        places: dict[int, Expression] = {number: dim(place) for place, number in enumerate(batches)}
        places |= {number: symbol(place) for place, number in enumerate(contracting)}
        places |= {number: dim(first_free + place) for place, number in enumerate(free)}
        return IndexingMap.of_shape(output, (places[number] for number in range(rank)), ranges=ranges)

    return (
        operand(len(lhs), numbers.lhs_batch, numbers.lhs_contracting, batch),
        operand(len(rhs), numbers.rhs_batch, numbers.rhs_contracting, batch + lhs_free),
    )


@frozen(kw_only=True)
class Window:
    """A window that slides over an operand, one entry per dimension.

    Args:
        size: The number of places.
        strides: The steps of the window.
        window_dilations: The distance between its places.
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


def reduce_window(output: Shape, shape: Shape, window: Window) -> IndexingMap:
    """Return the map of an operand of a windowed reduction: one symbol per window dimension of more than one place."""
    dilated = [(size - 1) * step + 1 if size else 0 for size, step in zip(shape, window.base_dilations, strict=True)]
    padded = [low + size + high for low, size, high in zip(window.low, dilated, window.high, strict=True)]
    results = (
        canonicalize(dim(number) * stride + symbol(number) * dilation)
        for number, (stride, dilation) in enumerate(zip(window.strides, window.window_dilations, strict=True))
    )
    sliding = IndexingMap.of_shape(output, results, ranges=bounds_of(window.size))
    interior = tuple(step - 1 for step in window.base_dilations)
    return without_unused_symbols(compose(sliding, pad(padded, window.low, window.high, interior)))


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


def _affine(number: int, factor: int, offset: int) -> Expression:
    return canonicalize(dim(number) * factor + offset)
