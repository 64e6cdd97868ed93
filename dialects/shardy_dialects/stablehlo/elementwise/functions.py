"""Functions of the real line."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.bodies import (
    HALVES,
    as_boolean,
    element_type,
    is_complex,
    is_float,
    is_unsigned,
    operands,
    widen_small_float,
    width,
)
from shardy_dialects.stablehlo.elementwise.complex_functions import complex_function
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar


def function(name: str, b: ElementBuilder, op: Op, *, complex_: str = "", keeps_halves: bool = False) -> Scalar:
    """Compute a function of ``math``; types of 16 bits are computed in ``f32``.

    Args:
        name: The op of ``math``.
        b: The builder.
        op: The op.
        complex_: The op for complex numbers.
        keeps_halves: Whether elements of 16 bits stay in their type.
    """
    values = operands(b, op)
    if is_complex(op.operands[0]):
        if complex_:
            return b.op(complex_, *values)
        result = complex_function(name, b, values[0])
        if result is None:
            message = f"kernels have no {name.partition('.')[2]} of complex numbers"
            raise UnsupportedError(Diagnostic("complex-function", message, op.location, op.name))
        return result
    if element_type(op.operands[0]) not in HALVES or keeps_halves:
        return b.op(name, *values)
    wide = [b.op("arith.extf", value, dtype="f32") for value in values]
    return b.op("arith.truncf", b.op(name, *wide), dtype=values[0].dtype)


def cube_root(b: ElementBuilder, op: Op) -> Scalar:
    """Compute the cube root; of a complex number the power with exponent 1/3, as XLA does."""
    if not is_complex(op.operands[0]):
        return function("math.cbrt", b, op)
    x = b.operand(0)
    part = x.dtype[len("complex<") : -1]
    third = b.op("complex.create", b.constant(1 / 3, part), b.constant(0, part), dtype=x.dtype)
    return b.op("complex.pow", x, third)


def logistic(b: ElementBuilder, op: Op) -> Scalar:
    """Compute ``1 / (1 + exp(-x))``."""
    x = b.operand(0)
    if is_complex(op.operands[0]):
        part = x.dtype[len("complex<") : -1]
        one = b.op("complex.create", b.constant(1, part), b.constant(0, part), dtype=x.dtype)
        return b.op("complex.div", one, b.op("complex.add", b.op("complex.exp", b.op("complex.neg", x)), one))
    wide = widen_small_float(b, x)
    one = b.constant(1, wide.dtype)
    result = b.op("arith.divf", one, b.op("arith.addf", b.op("math.exp", b.op("arith.negf", wide)), one))
    return result if result.dtype == x.dtype else b.op("arith.truncf", result, dtype=x.dtype)


def is_finite(b: ElementBuilder, op: Op) -> Scalar:
    """Tell infinities and NaNs from numbers."""
    x = widen_small_float(b, b.operand(0))
    infinity = b.constant(float("inf"), x.dtype)
    return as_boolean(b, b.op("arith.cmpf", b.op("math.absf", x), infinity, dtype="i1", predicate="one"))


def is_infinite(infinity: float, b: ElementBuilder, op: Op, *, of_magnitude: bool = False) -> Scalar:
    """Compare with an infinity.

    Args:
        infinity: The infinity.
        b: The builder.
        op: The op.
        of_magnitude: Whether the sign of the element does not count.
    """
    x = widen_small_float(b, b.operand(0))
    value = b.op("math.absf", x) if of_magnitude else x
    return as_boolean(b, b.op("arith.cmpf", value, b.constant(infinity, x.dtype), dtype="i1", predicate="oeq"))


def square(b: ElementBuilder, op: Op) -> Scalar:
    """Multiply with itself."""
    x = b.operand(0)
    return b.op("complex.mul" if is_complex(op.operands[0]) else "arith.mulf", x, x)


def power(b: ElementBuilder, op: Op) -> Scalar:
    """Raise to a power; integers by squaring, and negative ones by what is left of the fraction."""
    if is_complex(op.operands[0]) or is_float(op.operands[0]):
        return function("math.powf", b, op, complex_="complex.pow")
    base, exponent = operands(b, op)
    dtype, bits = base.dtype, width(op.operands[0])
    zero, one = b.constant(0, dtype), b.constant(1, dtype)

    def step(carried: Sequence[Scalar]) -> Sequence[Scalar]:
        total, factor, left = carried
        odd = b.op("arith.cmpi", b.op("arith.andi", left, one), one, dtype="i1", predicate="eq")
        total = b.op("arith.select", odd, b.op("arith.muli", total, factor), total, dtype=dtype)
        return [total, b.op("arith.muli", factor, factor), b.op("arith.shrui", left, one)]

    product = b.repeat(min(bits, 6), [one, base, exponent], step)[0]
    if is_unsigned(op.operands[0]):
        return product
    minus_one = b.constant(-1, dtype)
    is_even = b.op("arith.cmpi", b.op("arith.remsi", exponent, b.constant(2, dtype)), zero, dtype="i1", predicate="eq")
    is_negative = b.op("arith.cmpi", exponent, zero, dtype="i1", predicate="slt")
    is_one = b.op("arith.cmpi", base, one, dtype="i1", predicate="eq")
    is_minus_one = b.op("arith.cmpi", base, minus_one, dtype="i1", predicate="eq")
    fraction = b.op("arith.select", is_one, one, zero, dtype=dtype)
    signed = b.op("arith.select", is_even, one, minus_one, dtype=dtype)
    fraction = b.op("arith.select", is_minus_one, signed, fraction, dtype=dtype)
    return b.op("arith.select", is_negative, fraction, product, dtype=dtype)


def count(name: str, b: ElementBuilder, op: Op) -> Scalar:
    """Count bits."""
    return b.op(name, b.operand(0))
