"""Exponentials of ``f32`` on the host by sums and products, so that LLVM makes vectors of them.

The coefficients are those of Cephes' ``expf``, which XLA:CPU uses, too.
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
_COEFFICIENTS = (
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
    whole, exponent = _rounded(writer, product(writer, near, number(writer, math.log2(math.e))))
    rest = product_and_total(writer, whole, number(writer, -LN2_HIGH), near)
    rest = product_and_total(writer, whole, number(writer, -LN2_LOW), rest)
    return _scaled(writer, _near_one(writer, rest), exponent)


def exponential_of_two(writer: FunctionWriter, x: str) -> str:
    """Return ``2^n * e^r`` with ``x = n + r / log 2``.

    Args:
        writer: The function that it is part of.
        x: The number.
    """
    near = _bounded(writer, x, _BOUNDS_OF_TWO)
    whole, exponent = _rounded(writer, near)
    rest = product(writer, writer.new(f"fsub float {near}, {whole}"), number(writer, math.log(2)))
    return _scaled(writer, _near_one(writer, rest), exponent)


def _rounded(writer: FunctionWriter, x: str) -> tuple[str, str]:
    """Return the nearest integer, as a float and as an integer."""
    shifted = total(writer, x, number(writer, _SHIFT))
    exponent = writer.new(f"sub i32 {writer.new(f'bitcast float {shifted} to i32')}, {_SHIFT_BITS}")
    return total(writer, shifted, number(writer, -_SHIFT)), exponent


def _near_one(writer: FunctionWriter, rest: str) -> str:
    """Return the exponential of a small number."""
    found = polynomial(writer, _COEFFICIENTS, rest)
    found = product_and_total(writer, found, product(writer, rest, rest), rest)
    return total(writer, found, number(writer, 1.0))


def _scaled(writer: FunctionWriter, found: str, exponent: str) -> str:
    """Return the product with a power of two, in two steps, so that none overflows by itself."""
    first = writer.new(f"ashr i32 {exponent}, 1")
    for part in (first, writer.new(f"sub i32 {exponent}, {first}")):
        found = product(writer, found, _power_of_two(writer, part))
    return found


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
    found = number(writer, coefficients[0])
    for coefficient in coefficients[1:]:
        found = product_and_total(writer, found, x, number(writer, coefficient))
    return found


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
