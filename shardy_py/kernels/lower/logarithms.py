"""Logarithms of ``f32`` on the host by sums and products, so that LLVM makes vectors of them.

The coefficients are those of Cephes' ``logf``, which XLA:CPU uses, too.
"""

from __future__ import annotations

import math

from shardy_py.kernels.lower.exponentials import SINGLE
from shardy_py.kernels.lower.float_terms import number, or_zero, polynomial, product, total
from shardy_py.kernels.lower.writer import FunctionWriter

_LN2_HIGH, _LN2_LOW = SINGLE.log_2
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
    return _logarithm(writer, x, "")


def logarithm_plus_one(writer: FunctionWriter, x: str) -> str:
    """Return ``log s + d / s``, where ``s`` is ``1 + x`` rounded and ``d`` what rounding took away.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    rounded = total(writer, x, number(writer, 1.0))
    lost = writer.new(f"fsub float {x}, {total(writer, rounded, number(writer, -1.0))}")
    return or_zero(writer, x, _logarithm(writer, rounded, writer.new(f"fdiv float {lost}, {rounded}")))


def _logarithm(writer: FunctionWriter, x: str, more: str) -> str:
    """Return the sum of a logarithm and of a small addend, if there is one."""
    exponent, rest = _parts(writer, x)
    low = product(writer, exponent, number(writer, _LN2_LOW))
    low = total(writer, low, more) if more else low
    result = total(writer, rest, _beyond_first(writer, rest, low))
    result = total(writer, result, product(writer, exponent, number(writer, _LN2_HIGH)))
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
