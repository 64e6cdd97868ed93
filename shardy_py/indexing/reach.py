"""Places outside of a tensor to which an indexing map leads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from shardy_py.indexing.canonical import canonicalize, linear
from shardy_py.indexing.expressions import Expression, Variable
from shardy_py.indexing.indexing_map import IndexingMap, Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.values import frozen

_MOST_POINTS = 4096


@frozen
class Outside:
    """A place outside of a tensor.

    Args:
        point: The values of the map's dimensions and symbols.
        dim: The dimension of the tensor.
        index: The index there.
    """

    point: tuple[int, ...]
    dim: int
    index: int


@lru_cache(maxsize=4096)
def first_outside(map_: IndexingMap, shape: tuple[int, ...]) -> Outside | None:
    """Return a place of a map that is outside of a tensor, or None where there is none, or none is found.

    Sums of variables without constraints are looked at as a whole, all other maps point by point, if these are few.

    Args:
        map_: The map.
        shape: The sizes of the tensor.

    >>> first_outside(IndexingMap.parse("(i) -> (i + 1), domain: i in [0, 3]"), (4,))
    Outside(point=(3,), dim=0, index=4)
    """
    if map_.is_undefined or map_.is_known_empty or map_.runtimes or len(map_.results) != len(shape):
        return None
    variables = {variable: bound.interval for variable, bound in map_.variables.items()}
    ranges = Ranges(variables)
    for dim, (result, size) in enumerate(zip(map_.results, shape, strict=True)):
        result = canonicalize(result)
        if _is_inside(ranges.of(result), size):
            continue
        terms = linear(result).terms
        if not map_.constraints and all(isinstance(term, Variable) for term in terms):
            return _corner(map_, dim, result, variables)
        if prod(interval.size for interval in variables.values()) <= _MOST_POINTS:
            found = next(_outside(map_, dim, size, variables), None)
            if found is not None:
                return found
    return None


def _is_inside(interval: Interval, size: int) -> bool:
    return interval.lower >= 0 and interval.upper < size


def _corner(map_: IndexingMap, dim: int, result: Expression, variables: dict[Variable, Interval]) -> Outside:
    """Return the corner of the domain where a sum of variables is least, if that is negative, or greatest."""
    factors = linear(result).terms

    def end(*, is_least: bool) -> Outside:
        point = tuple(
            interval.lower if (factors.get(variable, 0) >= 0) is is_least else interval.upper
            for variable, interval in variables.items()
        )
        return Outside(point, dim, _index(map_, dim, point))

    least = end(is_least=True)
    return least if least.index < 0 else end(is_least=False)


def _outside(map_: IndexingMap, dim: int, size: int, variables: dict[Variable, Interval]) -> Iterator[Outside]:
    count = len(map_.dims)
    for point in product(*(range(interval.lower, interval.upper + 1) for interval in variables.values())):
        if map_.holds(point[:count], point[count:]):
            index = _index(map_, dim, point)
            if not 0 <= index < size:
                yield Outside(point, dim, index)


def _index(map_: IndexingMap, dim: int, point: Sequence[int]) -> int:
    count = len(map_.dims)
    return int(map_.evaluate(point[:count], point[count:])[dim])
