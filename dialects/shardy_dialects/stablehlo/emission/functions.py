"""Functions of the real line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_dialects.stablehlo.emission.types import (
    HALVES,
    as_boolean,
    element_type,
    is_complex,
    is_float,
    is_unsigned,
    kernel_type,
    operands,
    width,
)
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Emission, Scalar


def function(name: str, *, complex_: str = "", keeps_halves: bool = False) -> Callable[[ElementBuilder, Op], Scalar]:
    """Return the body of a function of ``math``; types of 16 bits are computed in ``f32``.

    Args:
        name: The op.
        complex_: The op for complex numbers.
        keeps_halves: Whether elements of 16 bits stay in their type.
    """

    def body(b: ElementBuilder, op: Op) -> Scalar:
        values = operands(b, op)
        if is_complex(op.operands[0]):
            if not complex_:
                message = f"kernels have no {name.partition('.')[2]} of complex numbers"
                raise UnsupportedError(Diagnostic("complex-function", message, op.location, op.name))
            return b.op(complex_, *values)
        if element_type(op.operands[0]) not in HALVES or keeps_halves:
            return b.op(name, *values)
        wide = [b.op("arith.extf", value, dtype="f32") for value in values]
        return b.op("arith.truncf", b.op(name, *wide), dtype=values[0].dtype)

    return body


def cbrt(b: ElementBuilder, op: Op) -> Scalar:
    """Compute the cube root; of a complex number the power with exponent 1/3, as XLA does."""
    if not is_complex(op.operands[0]):
        return function("math.cbrt")(b, op)
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
    one = b.constant(1, x.dtype)
    return b.op("arith.divf", one, b.op("arith.addf", b.op("math.exp", b.op("arith.negf", x)), one))


def is_finite(b: ElementBuilder, op: Op) -> Scalar:
    """Tell infinities and NaNs from numbers."""
    x = b.operand(0)
    infinity = b.constant(float("inf"), x.dtype)
    return as_boolean(b, b.op("arith.cmpf", b.op("math.absf", x), infinity, dtype="i1", predicate="one"))


def is_infinite(infinity: float, *, of_magnitude: bool = False) -> Emission:
    """Return the body of a comparison with an infinity.

    Args:
        infinity: The infinity.
        of_magnitude: Whether the sign of the element does not count.
    """

    def body(b: ElementBuilder, op: Op) -> Scalar:
        x = b.operand(0)
        value = b.op("math.absf", x) if of_magnitude else x
        return as_boolean(b, b.op("arith.cmpf", value, b.constant(infinity, x.dtype), dtype="i1", predicate="oeq"))

    return body


def square(b: ElementBuilder, op: Op) -> Scalar:
    """Multiply with itself."""
    x = b.operand(0)
    return b.op("complex.mul" if is_complex(op.operands[0]) else "arith.mulf", x, x)


def power(b: ElementBuilder, op: Op) -> Scalar:
    """Raise to a power; integers by squaring, and negative ones by what is left of the fraction."""
    if is_complex(op.operands[0]) or is_float(op.operands[0]):
        return function("math.powf", complex_="complex.pow")(b, op)
    base, exponent = operands(b, op)
    dtype, bits = base.dtype, width(op.operands[0])
    zero, one = b.constant(0, dtype), b.constant(1, dtype)

    def step(carried: Sequence[Scalar]) -> Sequence[Scalar]:
        total, factor, left = carried
        odd = b.op("arith.cmpi", b.op("arith.andi", left, one), one, dtype="i1", predicate="eq")
        total = b.op("arith.select", odd, b.op("arith.muli", total, factor), total, dtype=dtype)
        return [total, b.op("arith.muli", factor, factor), b.op("arith.shrui", left, one)]

    found = b.repeat((bits - 1).bit_length() + 1 if bits < 8 else 6, [one, base, exponent], step)[0]
    if is_unsigned(op.operands[0]):
        return found
    minus_one = b.constant(-1, dtype)
    is_even = b.op("arith.cmpi", b.op("arith.remsi", exponent, b.constant(2, dtype)), zero, dtype="i1", predicate="eq")
    is_negative = b.op("arith.cmpi", exponent, zero, dtype="i1", predicate="slt")
    is_one = b.op("arith.cmpi", base, one, dtype="i1", predicate="eq")
    is_minus_one = b.op("arith.cmpi", base, minus_one, dtype="i1", predicate="eq")
    fraction = b.op("arith.select", is_one, one, zero, dtype=dtype)
    signed = b.op("arith.select", is_even, one, minus_one, dtype=dtype)
    fraction = b.op("arith.select", is_minus_one, signed, fraction, dtype=dtype)
    return b.op("arith.select", is_negative, fraction, found, dtype=dtype)


def count(name: str) -> Emission:
    """Return the body of an op that counts bits."""

    def body(b: ElementBuilder, op: Op) -> Scalar:
        return b.op(name, b.operand(0))

    return body


def iota(b: ElementBuilder, op: Op) -> Scalar:
    """Give the index along a dimension."""
    target = op.results[0]
    index = b.indices[int(op.attributes["iota_dimension"])]
    dtype = kernel_type(element_type(target))
    if is_complex(target):
        part = dtype[len("complex<") : -1]
        real = b.op("arith.sitofp", b.op("arith.index_castui", index, dtype="i64"), dtype=part)
        return b.op("complex.create", real, b.constant(0, part), dtype=dtype)
    if is_float(target):
        return b.op("arith.sitofp", b.op("arith.index_castui", index, dtype="i64"), dtype=dtype)
    return b.op("arith.index_castui", index, dtype=dtype)


def constant(b: ElementBuilder, op: Op) -> Scalar:
    """Give an element of the constant."""
    return b.literal(op)


BODIES: dict[str, Emission] = {
    **{name: function(f"math.{name}") for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh")},
    "atan2": function("math.atan2", complex_="complex.atan2"),
    "cbrt": cbrt,
    "ceil": function("math.ceil"),
    "constant": constant,
    "cosine": function("math.cos", complex_="complex.cos"),
    "count_leading_zeros": count("math.ctlz"),
    "exponential": function("math.exp", complex_="complex.exp", keeps_halves=True),
    "exponential_minus_one": function("math.expm1", complex_="complex.expm1"),
    "erf": function("math.erf"),
    "floor": function("math.floor"),
    "iota": iota,
    "is_finite": is_finite,
    "is_inf": is_infinite(float("inf"), of_magnitude=True),
    "is_neg_inf": is_infinite(float("-inf")),
    "is_pos_inf": is_infinite(float("inf")),
    "log": function("math.log", complex_="complex.log", keeps_halves=True),
    "log_plus_one": function("math.log1p", complex_="complex.log1p"),
    "logistic": logistic,
    "popcnt": count("math.ctpop"),
    "power": power,
    "round_nearest_afz": function("math.round"),
    "round_nearest_even": function("math.roundeven"),
    "rsqrt": function("math.rsqrt", complex_="complex.rsqrt"),
    "sine": function("math.sin", complex_="complex.sin"),
    "square": square,
    "sqrt": function("math.sqrt", complex_="complex.sqrt"),
    "tan": function("math.tan", complex_="complex.tan"),
    "tanh": function("math.tanh", complex_="complex.tanh"),
}
