"""Exponentials and logarithms of ``f32`` on the host by sums and products, so that LLVM makes vectors of them.

The coefficients are those of Cephes' ``expf`` and ``logf``, which XLA:CPU uses, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import builtin

from shardy_py.kernels.lower.writer import FunctionWriter

_BOUNDS, _BOUNDS_OF_TWO = (-104.0, 89.0), (-151.0, 128.0)
# What is added to a number to round it to an integer, which the low bits then hold.
_SHIFT, _SHIFT_BITS = 12582912.0, 0x4B400000
# ln 2 in two parts: products of the first one with exponents are exact.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
_EXPONENTIAL_COEFFICIENTS = (
    *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
    *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)


def exponential(writer: FunctionWriter, x: str) -> str:
    """Return ``2^n * e^r`` with ``x = n log 2 + r``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    near = _bounded(writer, x, _BOUNDS)
    integer_part, exponent = _rounded(writer, product(writer, near, number(writer, math.log2(math.e))))
    rest = product_and_total(writer, integer_part, number(writer, -LN2_HIGH), near)
    rest = product_and_total(writer, integer_part, number(writer, -LN2_LOW), rest)
    return _scaled(writer, _near_one(writer, rest), exponent)


def exponential_of_two(writer: FunctionWriter, x: str) -> str:
    """Return ``2^n * e^r`` with ``x = n + r / log 2``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    near = _bounded(writer, x, _BOUNDS_OF_TWO)
    integer_part, exponent = _rounded(writer, near)
    rest = product(writer, writer.new(f"fsub float {near}, {integer_part}"), number(writer, math.log(2)))
    return _scaled(writer, _near_one(writer, rest), exponent)


def _rounded(writer: FunctionWriter, x: str) -> tuple[str, str]:
    """Return the nearest integer, as a float and as an integer."""
    shifted = total(writer, x, number(writer, _SHIFT))
    exponent = writer.new(f"sub i32 {writer.new(f'bitcast float {shifted} to i32')}, {_SHIFT_BITS}")
    return total(writer, shifted, number(writer, -_SHIFT)), exponent


def _near_one(writer: FunctionWriter, rest: str) -> str:
    """Return the exponential of a small number."""
    terms = polynomial(writer, _EXPONENTIAL_COEFFICIENTS, rest)
    terms = product_and_total(writer, terms, product(writer, rest, rest), rest)
    return total(writer, terms, number(writer, 1.0))


def _scaled(writer: FunctionWriter, result: str, exponent: str) -> str:
    """Return the product with a power of two, in two steps, so that none overflows by itself."""
    first = writer.new(f"ashr i32 {exponent}, 1")
    for part in (first, writer.new(f"sub i32 {exponent}, {first}")):
        result = product(writer, result, _power_of_two(writer, part))
    return result


def _bounded(writer: FunctionWriter, x: str, bounds: tuple[float, float]) -> str:
    """Return a number, or a bound whose exponential is already 0 or infinite; a NaN stays."""
    for predicate, bound in zip(("olt", "ogt"), bounds, strict=True):
        limit = number(writer, bound)
        x = writer.new(f"select i1 {writer.new(f'fcmp {predicate} float {x}, {limit}')}, float {limit}, float {x}")
    return x


def _power_of_two(writer: FunctionWriter, exponent: str) -> str:
    bits = writer.new(f"shl i32 {writer.new(f'add i32 {exponent}, 127')}, 23")
    return writer.new(f"bitcast i32 {bits} to float")


def polynomial(writer: FunctionWriter, coefficients: Sequence[float], x: str) -> str:
    """Return a polynomial by Horner's rule, from the coefficient of the highest power on."""
    result = number(writer, coefficients[0])
    for coefficient in coefficients[1:]:
        result = product_and_total(writer, result, x, number(writer, coefficient))
    return result


def number(writer: FunctionWriter, value: float) -> str:
    """Return a constant."""
    return writer.number(value, builtin.f32)


def product_and_total(writer: FunctionWriter, left: str, right: str, other: str) -> str:
    """Return the sum of a product and another number, rounded once where the processor can."""
    return writer.call("llvm.fmuladd.f32", "float", [("float", value) for value in (left, right, other)])


def total(writer: FunctionWriter, left: str, right: str) -> str:
    """Return a sum."""
    return writer.new(f"fadd float {left}, {right}")


def product(writer: FunctionWriter, left: str, right: str) -> str:
    """Return a product."""
    return writer.new(f"fmul float {left}, {right}")


# The bits of the least number whose exponent is taken as 0, the root of 1/2; that of the number is below its double.
_ROOT_OF_HALF = 0x3F3504F3
_LEAST_NORMAL, _TO_NORMAL = 2.0**-126, 23
_LOGARITHM_COEFFICIENTS = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)


def logarithm(writer: FunctionWriter, x: str) -> str:
    """Return ``n log 2 + log (1 + r)`` with ``x = 2^n (1 + r)``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    exponent, rest = _parts(writer, x)
    low = product(writer, exponent, number(writer, LN2_LOW))
    result = total(writer, rest, _beyond_first(writer, rest, low))
    result = total(writer, result, product(writer, exponent, number(writer, LN2_HIGH)))
    return _special(writer, x, result)


def logarithm_of_two(writer: FunctionWriter, x: str) -> str:
    """Return ``n + log (1 + r) / log 2`` with ``x = 2^n (1 + r)``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    exponent, rest = _parts(writer, x)
    fraction_logarithm = total(writer, rest, _beyond_first(writer, rest, ""))
    fraction_logarithm = total(writer, exponent, product(writer, fraction_logarithm, number(writer, math.log2(math.e))))
    return _special(writer, x, fraction_logarithm)


def _parts(writer: FunctionWriter, x: str) -> tuple[str, str]:
    """Return the exponent of a number as a float, and its mantissa minus 1; subnormals are normalized first."""
    is_small = writer.new(f"fcmp olt float {x}, {number(writer, _LEAST_NORMAL)}")
    large = product(writer, x, number(writer, 2.0**_TO_NORMAL))
    normal = writer.new(f"select i1 {is_small}, float {large}, float {x}")
    bits = writer.new(f"sub i32 {writer.new(f'bitcast float {normal} to i32')}, {_ROOT_OF_HALF}")
    moved = writer.new(f"select i1 {is_small}, i32 {_TO_NORMAL}, i32 0")
    unbiased = writer.new(f"sub i32 {writer.new(f'ashr i32 {bits}, 23')}, {moved}")
    fraction = writer.new(f"add i32 {writer.new(f'and i32 {bits}, {(1 << 23) - 1}')}, {_ROOT_OF_HALF}")
    near_one = writer.new(f"bitcast i32 {fraction} to float")
    return writer.new(f"sitofp i32 {unbiased} to float"), total(writer, near_one, number(writer, -1.0))


def _beyond_first(writer: FunctionWriter, rest: str, more: str) -> str:
    """Return the sum of the terms of the series after the first one and of a small addend."""
    square = product(writer, rest, rest)
    terms = polynomial(writer, _LOGARITHM_COEFFICIENTS, rest)
    terms = product(writer, product(writer, terms, rest), square)
    terms = total(writer, terms, more) if more else terms
    return total(writer, terms, product(writer, square, number(writer, -0.5)))


def _special(writer: FunctionWriter, x: str, result: str) -> str:
    """Return the logarithm where the number is positive and finite, else an infinity or a NaN."""
    infinity, zero = number(writer, math.inf), number(writer, 0.0)
    is_finite = writer.new(f"fcmp olt float {x}, {infinity}")
    result = writer.new(f"select i1 {is_finite}, float {result}, float {x}")
    is_zero = writer.new(f"fcmp oeq float {x}, {zero}")
    result = writer.new(f"select i1 {is_zero}, float {number(writer, -math.inf)}, float {result}")
    is_negative = writer.new(f"fcmp olt float {x}, {zero}")
    return writer.new(f"select i1 {is_negative}, float {number(writer, math.nan)}, float {result}")
