"""The interval in which the values of an index expression lie."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from shardy_py.indexing.canonical import factored, linear
from shardy_py.indexing.expressions import Binary, Constant, Expression, Variable
from shardy_py.indexing.indexing_map import Interval

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
        found = self._known.get(expression)
        if found is None:
            found = self._computed(expression)
            constraint = self._constraints.get(expression)
            if constraint is not None:
                found = found.meet(constraint)
            self._known[expression] = found
        return found

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
                return _hull(one * other for one in _ends(left) for other in _ends(right))
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
    found = list(values)  # type: ignore[call-overload]
    return Interval(min(found), max(found))


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
