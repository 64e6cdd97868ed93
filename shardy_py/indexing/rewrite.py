"""Rewriting of index expressions with the ranges of their variables."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.indexing.canonical import (
    Linear,
    add,
    canonicalize,
    combine,
    factored,
    linear,
    modulo,
    product,
    quotient,
    total,
)
from shardy_py.indexing.expressions import Binary, Constant, Expression, count_operators
from shardy_py.indexing.indexing_map import Interval
from shardy_py.indexing.ranges import Ranges

_MAX_ROUNDS = 64


class Simplifier:
    """Simplifies expressions over variables of known ranges; equal expressions are simplified once.

    Args:
        ranges: The intervals of expressions.
        fold_points: Whether an expression with only one possible value becomes that constant.
    """

    def __init__(self, ranges: Ranges, *, fold_points: bool = True) -> None:
        self._ranges = ranges
        self._fold_points = fold_points
        self._done: dict[Expression, Expression] = {}

    def simplify(self, expression: Expression) -> Expression:
        """Return the simplest form of an expression; never one with more operators than the canonical form."""
        start = canonicalize(expression)
        cached = self._done.get(start)
        if cached is None:
            cached = start
            for _ in range(_MAX_ROUNDS):
                again = self._rewritten(cached)
                if again == cached:
                    break
                cached = again
            if count_operators(cached) > count_operators(start):
                cached = start
            self._done[start] = self._done[cached] = cached
        return cached

    def _rewritten(self, expression: Expression) -> Expression:
        """Return an expression after one round of rules, operands first."""
        if isinstance(expression, Constant):
            return expression
        if self._fold_points:
            interval = self._ranges.of(expression)
            if interval.is_point:
                return Constant(interval.lower)
        if not isinstance(expression, Binary):
            return expression
        if expression.op == "+":
            return self._sum(linear(expression))
        left, right = self.simplify(expression.left), self.simplify(expression.right)
        if isinstance(right, Constant) and right.value > 0:
            if expression.op == "mod":
                return self._modulo(left, right.value)
            if expression.op == "/":
                return self._quotient(left, right.value)
        if expression.op in ("min", "max"):
            return self._extremum(expression, left, right)
        return combine(expression.op, left, right)

    def _extremum(self, expression: Binary, left: Expression, right: Expression) -> Expression:
        first, second = self._ranges.of(left), self._ranges.of(right)
        if first.upper <= second.lower:
            return right if expression.op == "max" else left
        if second.upper <= first.lower:
            return left if expression.op == "max" else right
        return combine(expression.op, left, right)

    def _modulo(self, left: Expression, modulus: int) -> Expression:
        interval = self._ranges.of(left)
        period = interval.lower // modulus
        if interval.upper // modulus == period:
            return add((left, Constant(-period * modulus)))
        result = modulo(left, Constant(modulus))
        inner = _operands(result, "mod")
        if inner is None:
            return result
        sum_, modulus = linear(inner[0]), inner[1]
        split = self._split(sum_, modulus)
        if split is None:
            return result
        upper, factor, lower = split
        reduced = modulo(total(upper), Constant(modulus // factor))
        return total(linear(reduced).times(factor).plus(lower))

    def _quotient(self, left: Expression, by: int) -> Expression:
        if by == 1:
            return left
        digits = _operands(left, "mod")
        if digits is not None and digits[1] % by == 0:
            return modulo(quotient(digits[0], Constant(by)), Constant(digits[1] // by))
        nested = _operands(left, "/")
        if nested is not None and nested[1] > 0:
            return quotient(nested[0], Constant(nested[1] * by))
        sum_ = linear(left)
        multiples = Linear({term: factor for term, factor in sum_.terms.items() if factor % by == 0})
        if multiples.terms:
            rest = quotient(total(sum_.plus(multiples, -1)), Constant(by))
            return total(multiples.divided(by).plus(linear(rest)))
        split = self._split(sum_, by)
        if split is not None:
            return quotient(total(split[0]), Constant(by // split[1]))
        divisions = [term for term in sum_.terms if _operands(term, "/") is not None]
        if len(divisions) == 1 and sum_.terms[divisions[0]] == 1 and len(sum_.terms) > 1:
            dividend, divisor = _operands(divisions[0], "/") or (divisions[0], 1)
            if divisor > 0:
                others = sum_.plus(Linear({divisions[0]: 1}), -1).times(divisor)
                return quotient(total(others.plus(linear(dividend))), Constant(divisor * by))
        return quotient(left, Constant(by))

    def _split(self, sum_: Linear, divisor: int) -> tuple[Linear, int, Linear] | None:
        """Return a sum as ``a * g + b``, with g a divisor of a number and b in [0, g), or None.

        g is the greatest common divisor of all factors that are not 1.
        """
        scaled = Linear({term: factor for term, factor in sum_.terms.items() if factor != 1})
        factor = scaled.divisor
        if factor <= 1 or divisor % factor:
            return None
        high = sum_.offset // factor * factor
        lower = sum_.plus(scaled, -1).plus(Linear({}, high), -1)
        interval = self._ranges.of(total(lower))
        if interval.lower < 0 or interval.upper >= factor:
            return None
        return scaled.plus(Linear({}, high)).divided(factor), factor, lower

    def _sum(self, sum_: Linear) -> Expression:
        simplified = Linear({}, sum_.offset)
        for term, factor in sum_.terms.items():
            simplified = simplified.plus(linear(product(self.simplify(term), Constant(factor))))
        canonical = linear(total(simplified))
        for rule in (self._joined_digits, self._remainder):
            rewritten_sum = rule(canonical)
            if rewritten_sum is not None:
                return total(rewritten_sum)
        return total(canonical)

    def _joined_digits(self, sum_: Linear) -> Linear | None:
        """Return ``(x mod c) * a + (x / c) * (c * a)`` as ``x * a``, or None."""
        for term, factor in sum_.terms.items():
            digits = _operands(term, "mod")
            if digits is None or digits[1] <= 0:
                continue
            dividend, modulus = digits
            upper = linear(self.simplify(quotient(dividend, Constant(modulus))))
            others = sum_.plus(Linear({term: factor}), -1)
            if upper.terms and not upper.offset and others.contains(upper, modulus * factor):
                return others.plus(upper, -modulus * factor).plus(linear(dividend), factor)
        return None

    def _remainder(self, sum_: Linear) -> Linear | None:
        """Return ``x * a - (x / c) * (c * a)`` as ``(x mod c) * a``, or None."""
        for term, factor in sum_.terms.items():
            digits = _operands(term, "/")
            if digits is None or digits[1] <= 0 or factor >= 0 or factor % digits[1]:
                continue
            dividend, divisor = digits
            times = -factor // divisor
            others = sum_.plus(Linear({term: factor}), -1)
            dividend_sum = linear(dividend)
            if dividend_sum.terms and others.contains(dividend_sum, times):
                reduced = linear(modulo(dividend, Constant(divisor)))
                return others.plus(dividend_sum, -times).plus(reduced, times)
        return None


def _operands(expression: Expression, op: str) -> tuple[Expression, int] | None:
    """Return the operands of an operator whose right one is a constant, or None."""
    if isinstance(expression, Binary) and expression.op == op and isinstance(expression.right, Constant):
        return expression.left, expression.right.value
    return None


def unscaled(expression: Expression, interval: Interval, ranges: Ranges) -> tuple[Expression, Interval]:
    """Return a constraint with its constants moved to the bounds, as long as there are any.

    Args:
        expression: The constrained expression, simplified.
        interval: Where it has to lie.
        ranges: The intervals of expressions.
    """
    while True:
        for again in _moves(expression, interval, ranges):
            expression, interval = again
            break
        else:
            return expression, interval


def _moves(expression: Expression, interval: Interval, ranges: Ranges) -> Iterator[tuple[Expression, Interval]]:
    sum_ = linear(expression)
    if sum_.offset and sum_.terms:
        moved = Linear(sum_.terms)
        yield total(moved), Interval(interval.lower - sum_.offset, interval.upper - sum_.offset)
    term, factor = factored(expression)
    if factor != 1:
        low, high = sorted((interval.lower, interval.upper)) if factor > 0 else (interval.upper, interval.lower)
        yield term, Interval(-(-low // factor), high // factor)
    digits = _operands(expression, "/")
    if digits is not None and digits[1] > 0:
        dividend, by = digits
        yield dividend, Interval(interval.lower * by, interval.upper * by + by - 1)
    elif digits is not None and digits[1] < 0:
        dividend, by = digits
        yield dividend, Interval(interval.upper * by + by + 1, interval.lower * by)
    scaled = Linear({term: term_factor for term, term_factor in sum_.terms.items() if term_factor != 1})
    common = scaled.divisor
    if common > 1 and interval.lower == 0 and (interval.upper + 1) % common == 0 and not sum_.offset:
        low_part = ranges.of(total(sum_.plus(scaled, -1)))
        if low_part.lower >= 0 and low_part.upper < common:
            yield total(scaled.divided(common)), Interval(0, (interval.upper + 1) // common - 1)
