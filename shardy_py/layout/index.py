"""Positions of elements in memory: index to position and back, in integers, numpy arrays or indexing maps."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from shardy_py.indexing import Constant, Expression, IndexingMap, Interval, bounds_of, dim, simplify
from shardy_py.layout.shape import Shape
from shardy_py.layout.tiling import index_at, levels_of, linearized, position_of, tiled_sizes
from shardy_py.layout.values import invalid
from shardy_py.support.arguments import as_integer, shown


def expanded_sizes(shape: Shape) -> tuple[int, ...]:
    """Return the sizes after all tiling, major first; their product is the number of elements before tail padding.

    >>> from shardy_py.layout.parse import parse_array
    >>> expanded_sizes(parse_array("f32[8,8]{1,0:T(2,4)(2,1,1,1)}"))
    (2, 2, 2, 4, 2, 1, 1, 1)

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return tiled_sizes(shape)


def physical_strides(shape: Shape) -> tuple[int, ...]:
    """Return the distance of neighbours in elements, for each of the `expanded_sizes`.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return _strides(expanded_sizes(shape))


def strides(shape: Shape) -> tuple[int, ...]:
    """Return the distance of neighbours along each dimension, in elements.

    >>> from shardy_py.layout.parse import parse_array
    >>> strides(parse_array("f32[2,3,4]{0,2,1}"))
    (1, 8, 2)

    Raises:
        VerificationError: the layout is tiled, so that the distance varies, or a dimension is unbounded.
    """
    if shape.layout.tiles:
        message = f"the dimensions of the tiled {shape} have no constant strides"
        raise invalid("tiled-layout", message, hint="see physical_strides and expanded_sizes")
    physical = _strides(shape.physical_sizes)
    return tuple(stride for _, stride in sorted(zip(shape.layout.major_to_minor, physical, strict=True)))


def linear_index(shape: Shape, index: Sequence[Any]) -> Any:
    """Return the position of an element in memory, counted in elements.

    Args:
        shape: The array.
        index: One integer per dimension, or one numpy array per dimension, which broadcast together.

    >>> from shardy_py.layout.parse import parse_array
    >>> linear_index(parse_array("f32[3,5]{1,0:T(2,2)}"), (2, 3))
    17

    Raises:
        VerificationError: the index does not lie inside the array, or has another number of dimensions.
    """
    _check(shape, index)
    return position_of(shape, index)


def multi_index(shape: Shape, position: int) -> tuple[int, ...] | None:
    """Return the index of the element at a position in memory, or None where padding lies.

    >>> from shardy_py.layout.parse import parse_array
    >>> tiled = parse_array("f32[3,5]{1,0:T(2,2)}")
    >>> multi_index(tiled, 17), multi_index(tiled, 9)
    ((2, 3), None)

    Raises:
        VerificationError: the position lies outside the memory of the array.
    """
    count = tail_padded(shape, prod(expanded_sizes(shape)))
    if not 0 <= position < count:
        raise invalid("index-out-of-range", f"{shape} has no position {position}: it takes {count} elements")
    index, inside = multi_indices(shape, position)
    return index if inside else None


def multi_indices(shape: Shape, positions: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the indices at positions in memory, and which of the positions hold an element.

    Args:
        shape: The array.
        positions: An integer or a numpy array of them; not negative.

    Returns:
        One value or array per dimension, and whether an element lies there; where not, the index means nothing.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    _check_integers(positions)
    index, limits = index_at(shape, positions)
    inside: Any = positions < prod(expanded_sizes(shape))
    for value, size in limits:
        inside = inside & (value < size)
    return tuple(index), inside


def padded_position(shape: Shape, merged: Sequence[int]) -> int:
    """Return the position in memory of a place in the padded array, which may be padding.

    Args:
        shape: The array.
        merged: The physical index, major first, after the first tile combined dimensions; it may start with more
            dimensions of size one.
    """
    levels = levels_of(shape)
    if not levels:
        memory_position: int = linearized(merged[len(merged) - shape.rank :], shape.physical_sizes)
        return memory_position
    current, sizes = levels[0].split(merged[len(merged) - len(levels[0].merged) :]), levels[0].tiled
    for level in levels[1:]:
        current, sizes = level.forward(current), level.tiled
    position: int = linearized(current, sizes)
    return position


def tail_padded(shape: Shape, count: int) -> int:
    """Return a number of elements rounded up to the tail padding of the layout."""
    alignment = shape.layout.tail_padding
    return -(-count // alignment) * alignment


def _check(shape: Shape, index: Sequence[Any]) -> None:
    if isinstance(index, (str, bytes)) or not (isinstance(index, Sequence) or hasattr(index, "__array__")):
        raise invalid("invalid-argument", f"the index is {shown(index)}, not a sequence of integers")
    if len(index) != shape.rank:
        raise invalid("rank-mismatch", f"the index has {len(index)} numbers, {shape} has {shape.rank} dimensions")
    for number, (value, size) in enumerate(zip(index, shape.static_bounds, strict=True)):
        _check_integers(value)
        good = (value >= 0) & (value < size)
        if not (good if isinstance(good, bool) else good.all()):
            message = f"the index is not inside dimension {number} of {shape}, which has size {size}"
            raise invalid("index-out-of-range", message)


def _check_integers(value: Any) -> None:
    """Check that a part of an index is an integer, or an array of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if as_integer(value) is None and kind not in ("i", "u"):
        raise invalid("invalid-argument", f"{shown(value)} is neither an integer nor an array of integers")


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(sizes[number + 1 :]) for number in range(len(sizes)))


def to_indexing_map(shape: Shape) -> IndexingMap:
    """Return a layout as an indexing map: from the index of an element to its position in memory.

    Positions are counted in elements, as those of `linear_index` are.

    >>> from shardy_py.layout.parse import parse_array
    >>> print(to_indexing_map(parse_array("f32[2,3]{0,1}")))
    (d0, d1) -> (d1 * 2 + d0), domain: d0 in [0, 1], d1 in [0, 2]
    >>> to_indexing_map(parse_array("f32[3,5]{1,0:T(2,2)}")).evaluate((2, 3))
    [17]

    Raises:
        VerificationError: a dimension is unbounded.
    """
    position = position_of(shape, [dim(number) for number in range(shape.rank)])
    return simplify(IndexingMap.of_shape(shape.static_bounds, [_expression(position)]), fold_points=False)


def inverse_indexing_map(shape: Shape) -> IndexingMap:
    """Return the map from a position in memory to the index of the element there; its domain leaves padding out.

    >>> from shardy_py.layout.parse import parse_array
    >>> print(inverse_indexing_map(parse_array("f32[3]{0:T(2)}")))
    (d0) -> (d0), domain: d0 in [0, 2]

    Raises:
        VerificationError: a dimension is unbounded.
    """
    index, limits = index_at(shape, dim(0))
    map_ = IndexingMap(tuple(map(_expression, index)), bounds_of([prod(tiled_sizes(shape))]))
    constraints = [(_expression(value), Interval(0, size - 1)) for value, size in limits]
    return simplify(map_.with_constraints(constraints), fold_points=False)


def _expression(value: Any) -> Expression:
    """Return an index expression; arithmetic that needs no index gives an integer."""
    return Constant(value) if isinstance(value, int) else value
