"""Logarithms of ``f32`` on the host by sums and products, so that LLVM makes vectors of them.

The coefficients are those of Cephes' ``logf``, which XLA:CPU uses, too.
"""

from __future__ import annotations

import math

from shardy_py.kernels.lower.exponential import LN2_HIGH, LN2_LOW, number, polynomial, product, total
from shardy_py.kernels.lower.writer import FunctionWriter

# The bits of the least number whose exponent is taken as 0, the root of 1/2; that of the number is below its double.
_ROOT_OF_HALF = 0x3F3504F3
_LEAST_NORMAL, _TO_NORMAL = 2.0**-126, 23
_COEFFICIENTS = (
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
    found = total(writer, rest, _beyond_first(writer, rest, low))
    found = total(writer, found, product(writer, exponent, number(writer, LN2_HIGH)))
    return _special(writer, x, found)


def logarithm_of_two(writer: FunctionWriter, x: str) -> str:
    """Return ``n + log (1 + r) / log 2`` with ``x = 2^n (1 + r)``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    exponent, rest = _parts(writer, x)
    found = total(writer, rest, _beyond_first(writer, rest, ""))
    found = total(writer, exponent, product(writer, found, number(writer, math.log2(math.e))))
    return _special(writer, x, found)


def _parts(writer: FunctionWriter, x: str) -> tuple[str, str]:
    """Return the exponent of a number as a float, and what is beyond 1 without it; subnormals are made normal."""
    is_small = writer.new(f"fcmp olt float {x}, {number(writer, _LEAST_NORMAL)}")
    large = product(writer, x, number(writer, 2.0**_TO_NORMAL))
    normal = writer.new(f"select i1 {is_small}, float {large}, float {x}")
    bits = writer.new(f"sub i32 {writer.new(f'bitcast float {normal} to i32')}, {_ROOT_OF_HALF}")
    moved = writer.new(f"select i1 {is_small}, i32 {_TO_NORMAL}, i32 0")
    whole = writer.new(f"sub i32 {writer.new(f'ashr i32 {bits}, 23')}, {moved}")
    fraction = writer.new(f"add i32 {writer.new(f'and i32 {bits}, {(1 << 23) - 1}')}, {_ROOT_OF_HALF}")
    near_one = writer.new(f"bitcast i32 {fraction} to float")
    return writer.new(f"sitofp i32 {whole} to float"), total(writer, near_one, number(writer, -1.0))


def _beyond_first(writer: FunctionWriter, rest: str, more: str) -> str:
    """Return the terms of the series behind the first one, and something small to be added to them."""
    square = product(writer, rest, rest)
    found = polynomial(writer, _COEFFICIENTS, rest)
    found = product(writer, product(writer, found, rest), square)
    found = total(writer, found, more) if more else found
    return total(writer, found, product(writer, square, number(writer, -0.5)))


def _special(writer: FunctionWriter, x: str, found: str) -> str:
    """Return the logarithm of what is positive and finite; otherwise an infinity or a NaN."""
    infinity, zero = number(writer, math.inf), number(writer, 0.0)
    is_finite = writer.new(f"fcmp olt float {x}, {infinity}")
    found = writer.new(f"select i1 {is_finite}, float {found}, float {x}")
    is_zero = writer.new(f"fcmp oeq float {x}, {zero}")
    found = writer.new(f"select i1 {is_zero}, float {number(writer, -math.inf)}, float {found}")
    is_negative = writer.new(f"fcmp olt float {x}, {zero}")
    return writer.new(f"select i1 {is_negative}, float {number(writer, math.nan)}, float {found}")
