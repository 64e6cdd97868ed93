"""The canonical form of index expressions, independent of the ranges of variables.

Constants stand on the right, sums are flat and sorted with equal summands joined, products with a constant are
distributed over sums, divisors and moduli are as small as possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd
from typing import Any

from attrs import field

from shardy_py.indexing.expressions import ONE, ZERO, Binary, Constant, Expression, Operator, Variable
from shardy_py.values import frozen

_RANKS: dict[Operator, int] = {"+": 0, "*": 1, "mod": 2, "/": 3, "ceildiv": 4, "max": 5, "min": 6}
_VARIABLE_RANK, _CONSTANT_RANK = 7, 8


@lru_cache(maxsize=1 << 16)
def sort_key(expression: Expression) -> tuple[Any, ...]:
    """Return the sort key of an expression: operator, then left, then right."""
    if isinstance(expression, Constant):
        return (_CONSTANT_RANK, expression.value)
    if isinstance(expression, Variable):
        return (_VARIABLE_RANK, expression.kind, expression.number)
    return (_RANKS[expression.op], sort_key(expression.left), sort_key(expression.right))


@frozen(eq=False)
class Linear:
    """A sum as its summands.

    Args:
        terms: The factor of every summand that is not a constant; none is 0.
        offset: The constant.
    """

    terms: Mapping[Expression, int] = field(factory=dict)
    offset: int = 0

    @property
    def divisor(self) -> int:
        """The greatest common divisor of the factors; 0 where there are none."""
        return gcd(*self.terms.values())

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return the sum with another one, times a factor."""
        terms = dict(self.terms)
        for term, term_factor in other.terms.items():
            terms[term] = terms.get(term, 0) + term_factor * factor
        return Linear(
            {term: term_factor for term, term_factor in terms.items() if term_factor},
            self.offset + other.offset * factor,
        )

    def times(self, factor: int) -> Linear:
        """Return the product with a constant."""
        if not factor:
            return Linear()
        return Linear({term: term_factor * factor for term, term_factor in self.terms.items()}, self.offset * factor)

    def divided(self, by: int) -> Linear:
        """Return the quotient by a constant that divides every factor and the offset."""
        return Linear({term: factor // by for term, factor in self.terms.items()}, self.offset // by)

    def contains(self, other: Linear, factor: int) -> bool:
        """Return whether another sum, times a factor, can be taken out without a summand changing its sign."""
        return all(
            other_factor * factor * (self.terms.get(term, 0) - other_factor * factor) >= 0 and term in self.terms
            for term, other_factor in other.terms.items()
        )

    def expression(self) -> Expression:
        """Return the canonical expression."""
        summands = [term if factor == 1 else Binary("*", term, Constant(factor)) for term, factor in self.terms.items()]
        summands.sort(key=sort_key)
        if self.offset or not summands:
            summands.append(Constant(self.offset))
        total: Expression = summands[0]
        for summand in summands[1:]:
            total = Binary("+", total, summand)
        return total


def linear(expression: Expression) -> Linear:
    """Return a canonical expression as its summands."""
    terms: dict[Expression, int] = {}
    offset = 0
    pending = [expression]
    while pending:
        current = pending.pop()
        if isinstance(current, Constant):
            offset += current.value
        elif isinstance(current, Binary) and current.op == "+":
            pending += (current.right, current.left)
        else:
            term, factor = factored(current)
            terms[term] = terms.get(term, 0) + factor
    return Linear({term: factor for term, factor in terms.items() if factor}, offset)


def factored(expression: Expression) -> tuple[Expression, int]:
    """Return a summand as an expression and its constant factor."""
    if isinstance(expression, Binary) and expression.op == "*" and isinstance(expression.right, Constant):
        return expression.left, expression.right.value
    return expression, 1


def canonicalize(expression: Expression) -> Expression:
    """Return the canonical form of an expression."""
    if not isinstance(expression, Binary):
        return expression
    return _canonical(expression)


@lru_cache(maxsize=1 << 15)
def _canonical(expression: Binary) -> Expression:
    return combine(expression.op, canonicalize(expression.left), canonicalize(expression.right))


def combine(op: Operator, left: Expression, right: Expression) -> Expression:
    """Return the canonical form of an operator between two canonical expressions."""
    match op:
        case "+":
            return total(linear(left).plus(linear(right)))
        case "*":
            return product(left, right)
        case "mod":
            return modulo(left, right)
        case "/":
            return quotient(left, right)
        case "ceildiv":
            return _ceiling(left, right)
        case "max" | "min":
            return _extremum(op, left, right)


def add(expressions: Iterable[Expression]) -> Expression:
    """Return the sum of canonical expressions."""
    result = Linear()
    for expression in expressions:
        result = result.plus(linear(expression))
    return total(result)


def total(terms: Linear) -> Expression:
    """Return the canonical form of a sum, with digits of the same expression joined.

    ``(x / c) * (c * y) + (x mod c) * y`` is ``x * y`` for positive ``c``.
    """
    for term, factor in terms.terms.items():
        if not (isinstance(term, Binary) and term.op == "mod" and isinstance(term.right, Constant)):
            continue
        modulus = term.right.value
        upper = quotient(term.left, term.right)
        if modulus > 0 and terms.terms.get(upper) == modulus * factor:
            taken = Linear({term: factor, upper: modulus * factor})
            return total(terms.plus(taken, -1).plus(linear(term.left), factor))
    return terms.expression()


def product(left: Expression, right: Expression) -> Expression:
    """Return the product of canonical expressions."""
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(right, Constant):
        return total(linear(left).times(right.value))
    if sort_key(right) < sort_key(left):
        left, right = right, left
    return Binary("*", left, right)


def modulo(left: Expression, right: Expression) -> Expression:
    """Return the remainder of canonical expressions."""
    if not isinstance(right, Constant) or right.value <= 0:
        if isinstance(left, Constant) and isinstance(right, Constant) and right.value:
            return Constant(left.value % right.value)
        return Binary("mod", left, right)
    modulus = right.value
    sum_ = linear(left)
    sum_ = Linear({term: factor for term, factor in sum_.terms.items() if factor % modulus}, sum_.offset % modulus)
    if not sum_.terms:
        return Constant(sum_.offset % modulus)
    common = gcd(sum_.divisor, sum_.offset, modulus)
    if common > 1:
        return total(linear(modulo(total(sum_.divided(common)), Constant(modulus // common))).times(common))
    inner = total(sum_)
    if isinstance(inner, Binary) and inner.op == "mod" and _divides(modulus, inner.right):
        return modulo(inner.left, right)
    return Binary("mod", inner, right)


def _divides(divisor: int, expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.value > 0 and expression.value % divisor == 0


def quotient(left: Expression, right: Expression) -> Expression:
    """Return the quotient of canonical expressions, rounded down."""
    if not isinstance(right, Constant) or right.value == 0:
        return Binary("/", left, right)
    by = right.value
    if isinstance(left, Constant):
        return Constant(left.value // by)
    if by in (1, -1):
        return product(left, right)
    sum_ = linear(left)
    if by < 0:
        common = gcd(sum_.divisor, sum_.offset, by)
        return (
            Binary("/", total(sum_.divided(common)), Constant(by // common))
            if -by != common
            else (total(sum_.divided(-common)))
        )
    divisor = gcd(sum_.divisor, by)
    offset, rest = divmod(sum_.offset, by)
    # Less than the divisor of all else never carries into the next multiple.
    rest -= rest % divisor
    sum_ = Linear(sum_.terms, rest).divided(divisor)
    by //= divisor
    inner = total(sum_) if by == 1 else Binary("/", total(sum_), Constant(by))
    return add((inner, Constant(offset))) if offset else inner


def _ceiling(left: Expression, right: Expression) -> Expression:
    if isinstance(right, Constant) and right.value > 0:
        return quotient(add((left, Constant(right.value - 1))), right)
    if isinstance(left, Constant) and isinstance(right, Constant) and right.value:
        return Constant(-(-left.value // right.value))
    return Binary("ceildiv", left, right)


def _extremum(op: Operator, left: Expression, right: Expression) -> Expression:
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant((max if op == "max" else min)(left.value, right.value))
    if left == right:
        return left
    first, second = sorted((left, right), key=sort_key)
    return Binary(op, first, second)


__all__ = [
    "ONE",
    "ZERO",
    "Linear",
    "add",
    "canonicalize",
    "combine",
    "factored",
    "linear",
    "modulo",
    "product",
    "quotient",
    "sort_key",
    "total",
]
