"""Numbers of local programs as expressions of the sizes of inputs, from their values at some sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm
from typing import Any

from attrs import field

from shardy_py.values import define, frozen

Sizes = tuple[int, ...]
"""A size for each symbol."""
_MOST_FACTORS = 40


@frozen
class SizeExpression:
    """A sum of expressions of SymPy with rational coefficients, such as ``1/2 * (s0*(s1 + 1)) + 3``.

    Args:
        terms: Each coefficient with its expression.
        constant: The number that is added.
    """

    terms: tuple[tuple[Fraction, Any], ...]
    constant: Fraction

    def at(self, sizes: Mapping[Any, int]) -> Fraction:
        """Return the value, given the size of each symbol."""
        return sum((factor * int(expression.xreplace(sizes)) for factor, expression in self.terms), self.constant)

    @property
    def denominator(self) -> int:
        """The least number whose product with the expression has integer coefficients."""
        return lcm(self.constant.denominator, *(factor.denominator for factor, _ in self.terms))


@define(eq=False, slots=False)
class ExpressionFitter:
    """Finder of expressions by their values at some sizes.

    Attributes:
        symbols: The symbols of the sizes.
        samples: A size for each symbol. The sample behind the first one differs from it in the first symbol alone, and
            so on; the last ones check what fits these.
        expressions: What numbers may be multiples of, with the products of two of them.
    """

    symbols: Sequence[Any]
    samples: Sequence[Sizes]
    expressions: Sequence[Any] = ()
    _fitted: dict[tuple[int, ...], SizeExpression | None] = field(factory=dict, init=False)
    _candidates: list[tuple[Any, list[int]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        factors = list(dict.fromkeys([*self.symbols, *self.expressions]))
        pairs = combinations_with_replacement(factors[:_MOST_FACTORS], 2)
        products = dict.fromkeys([*factors, *(first * second for first, second in pairs)])
        self._candidates = [(each, self._values(each)) for each in products]

    def fit(self, values: Sequence[int]) -> SizeExpression | None:
        """Return the expression with some values, or None if none is known."""
        key = tuple(values)
        if key not in self._fitted:
            self._fitted[key] = self._linear(key) or self._multiple(key)
        return self._fitted[key]

    def fit_quotient(self, values: Sequence[float]) -> tuple[float, Any] | None:
        """Return the constant, and what it is divided by, of a number such as the factor of a mean."""
        for expression, numbers in self._candidates:
            products = [value * number for value, number in zip(values, numbers, strict=True)]
            nearest = round(products[0])
            constant = nearest if abs(products[0] - nearest) <= 1e-12 * abs(nearest) else products[0]
            if all(abs(product - constant) <= 1e-12 * abs(constant) for product in products):
                return constant, expression
        return None

    def _values(self, expression: Any) -> list[int]:
        return [int(expression.xreplace(dict(zip(self.symbols, sizes, strict=True)))) for sizes in self.samples]

    def _linear(self, values: Sequence[int]) -> SizeExpression | None:
        base = self.samples[0]
        slopes = [
            Fraction(values[number + 1] - values[0], self.samples[number + 1][number] - size)
            for number, size in enumerate(base)
        ]
        rest = values[0] - sum((slope * size for slope, size in zip(slopes, base, strict=True)), Fraction(0))
        for sizes, value in zip(self.samples, values, strict=True):
            if sum((slope * size for slope, size in zip(slopes, sizes, strict=True)), rest) != value:
                return None
        return _expression(zip(slopes, self.symbols, strict=True), rest)

    def _multiple(self, values: Sequence[int]) -> SizeExpression | None:
        for expression, numbers in self._candidates:
            if numbers[-1] == numbers[0]:
                continue
            slope = Fraction(values[-1] - values[0], numbers[-1] - numbers[0])
            rest = values[0] - slope * numbers[0]
            if all(slope * number + rest == value for number, value in zip(numbers, values, strict=True)):
                return _expression([(slope, expression)], rest)
        return None


def _expression(terms: Iterable[tuple[Fraction, Any]], constant: Fraction) -> SizeExpression:
    return SizeExpression(tuple((factor, each) for factor, each in terms if factor), constant)
