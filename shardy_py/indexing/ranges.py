"""Intervals of index expressions, and elements outside a tensor to which a map leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import gcd, prod

from shardy_py.indexing.canonical import canonicalize, factored, linear
from shardy_py.indexing.expressions import Binary, Constant, Expression, Variable
from shardy_py.indexing.indexing_map import IndexingMap, Interval
from shardy_py.values import frozen

_UNBOUNDED = 1 << 62
EVERYTHING = Interval(-_UNBOUNDED, _UNBOUNDED)


class Ranges:
    """Intervals of expressions, from the bounds of variables and constraints on whole expressions.

    Args:
        variables: The interval of every variable.
        constraints: Intervals of expressions that are known beside.
    """

    def __init__(
        self, variables: Mapping[Variable, Interval], constraints: Mapping[Expression, Interval] | None = None
    ) -> None:
        self._variables = variables
        self._constraints = constraints or {}
        self._known: dict[Expression, Interval] = {}

    def of(self, expression: Expression) -> Interval:
        """Return the interval of an expression."""
        interval = self._known.get(expression)
        if interval is None:
            interval = self._computed(expression)
            constraint = self._constraints.get(expression)
            if constraint is not None:
                interval = interval.meet(constraint)
            self._known[expression] = interval
        return interval

    def _computed(self, expression: Expression) -> Interval:
        if isinstance(expression, Constant):
            return Interval(expression.value, expression.value)
        if isinstance(expression, Variable):
            return self._variables.get(expression, EVERYTHING)
        if expression.op == "+":
            return self._sum(expression)
        left, right = self.of(expression.left), self.of(expression.right)
        match expression.op:
            case "*":
                return _hull(left_end * right_end for left_end in _ends(left) for right_end in _ends(right))
            case "mod":
                return _remainder(left, right)
            case "/":
                return _quotient(left, right, round_up=False)
            case "ceildiv":
                return _quotient(left, right, round_up=True)
            case "max":
                return Interval(max(left.lower, right.lower), max(left.upper, right.upper))
            case _:
                return Interval(min(left.lower, right.lower), min(left.upper, right.upper))

    def _sum(self, expression: Binary) -> Interval:
        left, right = self.of(expression.left), self.of(expression.right)
        return Interval(left.lower + right.lower, left.upper + right.upper)


def _ends(interval: Interval) -> tuple[int, int]:
    return interval.lower, interval.upper


def _hull(values: object) -> Interval:
    ends = list(values)  # type: ignore[call-overload]
    return Interval(min(ends), max(ends))


def _remainder(left: Interval, right: Interval) -> Interval:
    if not right.is_point or right.lower <= 0:
        largest = max(abs(right.lower), abs(right.upper)) - 1
        return Interval(min(0, -largest) if right.lower < 0 else 0, max(0, largest) if right.upper > 0 else 0)
    modulus = right.lower
    if left.lower >= 0 and left.upper < modulus:
        return left
    return Interval(0, modulus - 1)


def _quotient(left: Interval, right: Interval, *, round_up: bool) -> Interval:
    if not right.is_point or right.lower == 0:
        largest = max(abs(left.lower), abs(left.upper))
        return Interval(-largest - 1, largest + 1)
    by = right.lower
    return _hull(-(-end // by) if round_up else end // by for end in _ends(left))


def known_divisor(expression: Expression) -> int:
    """Return a number that divides every value of a canonical expression; 0 where the value is always 0."""
    if isinstance(expression, Binary) and expression.op in ("mod", "max", "min"):
        return gcd(known_divisor(expression.left), known_divisor(expression.right))
    sum_ = linear(expression)
    if isinstance(expression, Binary) and factored(expression) == (expression, 1) and expression.op != "+":
        return 1
    inner = [factor * (known_divisor(term) if term != expression else 1) for term, factor in sum_.terms.items()]
    return gcd(sum_.offset, *inner)


__all__ = ["EVERYTHING", "Ranges", "known_divisor"]


_MOST_POINTS = 4096


@frozen
class Outside:
    """An index outside a tensor.

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
    """Return an index outside a tensor to which a map leads, or None if none is found.

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
            outside = next(_outside(map_, dim, size, variables), None)
            if outside is not None:
                return outside
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
