"""Exponentials, and what follows from them, on the host by sums and products, so that LLVM makes vectors of them.

The coefficients are those of Cephes' ``expf`` and ``exp``, which XLA:CPU uses, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import field

from shardy_py.kernels.lower.float_terms import number, or_zero, polynomial, product, product_and_total, total
from shardy_py.kernels.lower.writer import FunctionWriter
from shardy_py.values import frozen


def _beyond_one_single(writer: FunctionWriter, rest: str) -> str:
    terms = polynomial(writer, _COEFFICIENTS, rest)
    return product_and_total(writer, terms, product(writer, rest, rest), rest)


def _beyond_one_double(writer: FunctionWriter, rest: str) -> str:
    """Return ``2 P / (Q - P)`` with an odd ``P`` and an even ``Q``."""
    square = product(writer, rest, rest, "double")
    over = product(writer, rest, polynomial(writer, _OVER, square, "double"), "double")
    under = writer.new(f"fsub double {polynomial(writer, _UNDER, square, 'double')}, {over}")
    return product(writer, writer.new(f"fdiv double {over}, {under}"), number(writer, 2.0, "double"), "double")


@frozen
class Exponentials:
    """Exponentials of a format of floats.

    Args:
        type_: The format.
        integer: The integers of as many bits.
        bias: What an exponent of zero is in these bits.
        mantissa: How many bits are behind the exponent.
        log_2: The logarithm of two, in two parts: products of the first one with exponents are exact.
        bounds: Numbers whose exponential is already 0 or infinite.
        bounds_of_two: The same of powers of two.
        least_minus_one: A number whose exponential is too small to change -1.
        beyond_one: What writes the exponential of a small number, minus 1.
    """

    type_: str
    integer: str
    bias: int
    mantissa: int
    log_2: tuple[float, float]
    bounds: tuple[float, float]
    bounds_of_two: tuple[float, float]
    least_minus_one: float
    beyond_one: Callable[[FunctionWriter, str], str] = field(repr=False)

    def exponential(self, writer: FunctionWriter, x: str) -> str:
        """Return ``2^n * e^r`` with ``x = n log 2 + r``.

        Args:
            writer: The function that it is part of.
            x: The number.
        """
        rest, exponent = self._reduced(writer, self._bounded(writer, x, self.bounds))
        return self._near_one_scaled(writer, rest, exponent)

    def of_two(self, writer: FunctionWriter, x: str) -> str:
        """Return ``2^n * e^r`` with ``x = n + r / log 2``.

        Args:
            writer: The function that it is part of.
            x: The number.
        """
        near = self._bounded(writer, x, self.bounds_of_two)
        integer_part, exponent = self._rounded(writer, near)
        rest = self._product(writer, writer.new(f"fsub {self.type_} {near}, {integer_part}"), math.log(2))
        return self._near_one_scaled(writer, rest, exponent)

    def minus_one(self, writer: FunctionWriter, x: str) -> str:
        """Return ``2^n (e^r - 1) + (2^n - 1)`` with ``x = n log 2 + r``, which is exact where numbers are small.

        Args:
            writer: The function that it is part of.
            x: The number.
        """
        near = self._bounded(writer, x, (self.least_minus_one, self.bounds[1]))
        rest, exponent = self._reduced(writer, near)
        # Half of it is computed first: the power of two itself may be infinite.
        power = self._power_of_two(writer, writer.new(f"sub {self.integer} {exponent}, 1"))
        less = self._total(writer, power, -0.5)
        half = product_and_total(writer, power, self.beyond_one(writer, rest), less, self.type_)
        return or_zero(writer, x, self._product(writer, half, 2.0), self.type_)

    def _reduced(self, writer: FunctionWriter, x: str) -> tuple[str, str]:
        """Return the rest of a number beside the nearest multiple of log 2, and which multiple that is."""
        integer_part, exponent = self._rounded(writer, self._product(writer, x, math.log2(math.e)))
        rest = x
        for part in self.log_2:
            rest = product_and_total(writer, integer_part, number(writer, -part, self.type_), rest, self.type_)
        return rest, exponent

    def _rounded(self, writer: FunctionWriter, x: str) -> tuple[str, str]:
        """Return the nearest integer, as a float and as an integer."""
        # What is added rounds the number, so that the low bits hold the integer.
        shift = 1.5 * 2.0**self.mantissa
        bits = (self.bias + self.mantissa << self.mantissa) + (1 << self.mantissa - 1)
        shifted = self._total(writer, x, shift)
        as_integer = writer.new(f"bitcast {self.type_} {shifted} to {self.integer}")
        return self._total(writer, shifted, -shift), writer.new(f"sub {self.integer} {as_integer}, {bits}")

    def _near_one_scaled(self, writer: FunctionWriter, rest: str, exponent: str) -> str:
        """Return the exponential of a small number times a power of two."""
        result = self._total(writer, self.beyond_one(writer, rest), 1.0)
        # In two steps, so that none overflows by itself.
        first = writer.new(f"ashr {self.integer} {exponent}, 1")
        for part in (first, writer.new(f"sub {self.integer} {exponent}, {first}")):
            result = product(writer, result, self._power_of_two(writer, part), self.type_)
        return result

    def _bounded(self, writer: FunctionWriter, x: str, bounds: tuple[float, float]) -> str:
        """Return a number, or the bound that it is beyond; a NaN stays."""
        for predicate, bound in zip(("olt", "ogt"), bounds, strict=True):
            limit = number(writer, bound, self.type_)
            is_beyond = writer.new(f"fcmp {predicate} {self.type_} {x}, {limit}")
            x = writer.new(f"select i1 {is_beyond}, {self.type_} {limit}, {self.type_} {x}")
        return x

    def _power_of_two(self, writer: FunctionWriter, exponent: str) -> str:
        biased = writer.new(f"add {self.integer} {exponent}, {self.bias}")
        bits = writer.new(f"shl {self.integer} {biased}, {self.mantissa}")
        return writer.new(f"bitcast {self.integer} {bits} to {self.type_}")

    def _product(self, writer: FunctionWriter, x: str, factor: float) -> str:
        return product(writer, x, number(writer, factor, self.type_), self.type_)

    def _total(self, writer: FunctionWriter, x: str, term: float) -> str:
        return total(writer, x, number(writer, term, self.type_), self.type_)


_COEFFICIENTS = (
    *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
    *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)
_OVER = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
_UNDER = (
    *(3.00198505138664455042e-6, 2.52448340349684104192e-3),
    *(2.27265548208155028766e-1, 2.00000000000000000005),
)
SINGLE = Exponentials(
    *("float", "i32", 127, 23, (0.693359375, -2.12194440e-4)),
    *((-104.0, 89.0), (-151.0, 128.0), -18.0, _beyond_one_single),
)
DOUBLE = Exponentials(
    *("double", "i64", 1023, 52, (6.93145751953125e-1, 1.42860682030941723212e-6)),
    *((-746.0, 710.0), (-1076.0, 1024.0), -38.0, _beyond_one_double),
)

_TANGENT_IS_ONE = 22.0


def hyperbolic_tangent(writer: FunctionWriter, x: str) -> str:
    """Return that of an ``f64``, ``m / (m + 2)`` with ``m = e^2|x| - 1`` and the sign of the number.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    double = "double"
    amount = writer.call("llvm.fabs.f64", double, [(double, x)])
    limit = number(writer, _TANGENT_IS_ONE, double)
    is_large = writer.new(f"fcmp ogt double {amount}, {limit}")
    near = writer.new(f"select i1 {is_large}, double {limit}, double {amount}")
    over = DOUBLE.minus_one(writer, total(writer, near, near, double))
    quotient = writer.new(f"fdiv double {over}, {total(writer, over, number(writer, 2.0, double), double)}")
    return writer.call("llvm.copysign.f64", double, [(double, quotient), (double, x)])
