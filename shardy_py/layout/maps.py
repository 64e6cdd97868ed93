"""Layouts as indexing maps: from the index of an element to its position in memory, and back."""

from __future__ import annotations

from math import prod
from typing import Any

from shardy_py.indexing import Constant, Expression, IndexingMap, Interval, bounds_of, dim, simplify
from shardy_py.layout.shape import Shape
from shardy_py.layout.tiling import index_at, position_of, tiled_sizes


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
