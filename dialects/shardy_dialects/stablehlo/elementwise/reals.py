"""Formulas of real numbers for scalar bodies: ``(x * x + 1) / y`` instead of an op for each step."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.plugins import ElementBuilder, Scalar


class Condition:
    """A condition that a scalar body computes.

    Args:
        b: The builder.
        scalar: The condition, an ``i1``.
    """

    __slots__ = ("b", "scalar")

    def __init__(self, b: ElementBuilder, scalar: Scalar) -> None:
        self.b, self.scalar = b, scalar

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.b, self.b.op("arith.andi", self.scalar, other.scalar))

    def __or__(self, other: Condition) -> Condition:
        return Condition(self.b, self.b.op("arith.ori", self.scalar, other.scalar))

    def choose(self, then: Real, otherwise: Real | float) -> Real:
        """Return one of two numbers, both of which are computed."""
        other = then.like(otherwise)
        scalar = self.b.op("arith.select", self.scalar, then.scalar, other.scalar, dtype=then.scalar.dtype)
        return Real(self.b, scalar)


class Real:
    """A real number that a scalar body computes.

    Args:
        b: The builder.
        scalar: The number, of a floating-point type.
    """

    __slots__ = ("b", "scalar")

    def __init__(self, b: ElementBuilder, scalar: Scalar) -> None:
        self.b, self.scalar = b, scalar

    def like(self, value: Real | float) -> Real:
        """Return a number in the type of this one."""
        return value if isinstance(value, Real) else Real(self.b, self.b.constant(value, self.scalar.dtype))

    def apply(self, name: str, *others: Real | float) -> Real:
        """Return what an op of ``arith`` or ``math`` gives for the number and others."""
        return Real(self.b, self.b.op(name, self.scalar, *(self.like(other).scalar for other in others)))

    def compare(self, predicate: str, other: Real | float) -> Condition:
        """Return whether the number compares with another one as a predicate of ``arith.cmpf`` says."""
        scalar = self.b.op("arith.cmpf", self.scalar, self.like(other).scalar, dtype="i1", predicate=predicate)
        return Condition(self.b, scalar)

    def __add__(self, other: Real | float) -> Real:
        return self.apply("arith.addf", other)

    def __sub__(self, other: Real | float) -> Real:
        return self.apply("arith.subf", other)

    def __rsub__(self, other: float) -> Real:
        return self.like(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return self.apply("arith.mulf", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.apply("arith.divf", other)

    def __rtruediv__(self, other: float) -> Real:
        return self.like(other) / self

    def __neg__(self) -> Real:
        return self.apply("arith.negf")

    def __abs__(self) -> Real:
        return self.apply("math.absf")

    def __lt__(self, other: Real | float) -> Condition:
        return self.compare("olt", other)

    def __le__(self, other: Real | float) -> Condition:
        return self.compare("ole", other)

    @property
    def is_whole(self) -> Condition:
        """The condition that the number is its own floor."""
        return self.compare("oeq", self.apply("math.floor"))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """Return a polynomial by Horner's rule.

    Args:
        x: The number.
        coefficients: The coefficients, that of the highest power first.
    """
    total = x * coefficients[0] + coefficients[1] if len(coefficients) > 1 else x.like(coefficients[0])
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def chebyshev(x: Real, coefficients: Sequence[float]) -> Real:
    """Return a series of Chebyshev polynomials at ``x / 2`` by Clenshaw's rule, with half of the last coefficient.

    Args:
        x: Twice the number.
        coefficients: The coefficients, that of the highest degree first.
    """
    before, current, following = x.like(0), x.like(0), x.like(coefficients[0])
    for coefficient in coefficients[1:]:
        before, current, following = current, following, x * following - current + coefficient
    return (following - before) * 0.5
