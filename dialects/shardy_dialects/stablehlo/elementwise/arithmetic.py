"""Arithmetic, logic and comparisons."""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import case_of
from shardy_dialects.stablehlo.bodies import (
    as_boolean,
    as_condition,
    element_type,
    is_boolean,
    is_complex,
    is_float,
    is_unsigned,
    kernel_type,
    operands,
    widen_small_float,
    width,
)
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar


def by_type(
    floats: str,
    signed: str,
    b: ElementBuilder,
    op: Op,
    *,
    unsigned: str = "",
    boolean: str = "",
    complex_: str = "",
) -> Scalar:
    """Compute by one op for each kind of elements."""
    value = op.operands[0]
    if is_boolean(value):
        name = boolean or unsigned or signed
    elif is_float(value):
        name = floats
    elif is_complex(value):
        name = complex_
    else:
        name = (unsigned or signed) if is_unsigned(value) else signed
    return b.op(name, *operands(b, op))


def divide(b: ElementBuilder, op: Op) -> Scalar:
    """Divide; integers by zero give all ones, and the least one by -1 itself."""
    value = op.operands[0]
    left, right = operands(b, op)
    if is_float(value):
        return b.op("arith.divf", left, right)
    if is_complex(value):
        return b.op("complex.div", left, right)
    dtype = left.dtype
    zero, one, minus_one = (b.constant(number, dtype) for number in (0, 1, -1))
    least = b.constant(-(1 << (width(value) - 1)), dtype)
    by_zero = b.op("arith.cmpi", right, zero, dtype="i1", predicate="eq")
    if is_unsigned(value):
        safe = b.op("arith.select", by_zero, one, right, dtype=dtype)
        quotient = b.op("arith.divui", left, safe)
        return b.op("arith.select", by_zero, minus_one, quotient, dtype=dtype)
    overflows = _overflows(b, left, right, least, minus_one)
    unsafe = b.op("arith.ori", by_zero, overflows)
    safe = b.op("arith.select", unsafe, one, right, dtype=dtype)
    quotient = b.op("arith.divsi", left, safe)
    quotient = b.op("arith.select", overflows, least, quotient, dtype=dtype)
    return b.op("arith.select", by_zero, minus_one, quotient, dtype=dtype)


def remainder(b: ElementBuilder, op: Op) -> Scalar:
    """Take the remainder with the sign of the dividend; integers by zero give the dividend, and by -1 zero."""
    value = op.operands[0]
    left, right = operands(b, op)
    if is_float(value):
        return b.op("arith.remf", left, right)
    dtype = left.dtype
    zero, one = b.constant(0, dtype), b.constant(1, dtype)
    by_zero = b.op("arith.cmpi", right, zero, dtype="i1", predicate="eq")
    if is_unsigned(value):
        safe = b.op("arith.select", by_zero, one, right, dtype=dtype)
        rest = b.op("arith.remui", left, safe)
        return b.op("arith.select", by_zero, left, rest, dtype=dtype)
    least = b.constant(-(1 << (width(value) - 1)), dtype)
    overflows = _overflows(b, left, right, least, b.constant(-1, dtype))
    unsafe = b.op("arith.ori", by_zero, overflows)
    safe = b.op("arith.select", unsafe, one, right, dtype=dtype)
    rest = b.op("arith.remsi", left, safe)
    rest = b.op("arith.select", overflows, zero, rest, dtype=dtype)
    return b.op("arith.select", by_zero, left, rest, dtype=dtype)


def _overflows(b: ElementBuilder, left: Scalar, right: Scalar, least: Scalar, minus_one: Scalar) -> Scalar:
    """Return whether the least integer is divided by -1."""
    is_least = b.op("arith.cmpi", left, least, dtype="i1", predicate="eq")
    by_minus_one = b.op("arith.cmpi", right, minus_one, dtype="i1", predicate="eq")
    return b.op("arith.andi", is_least, by_minus_one)


def negate(b: ElementBuilder, op: Op) -> Scalar:
    """Change the sign."""
    value = op.operands[0]
    x = b.operand(0)
    if is_float(value):
        return b.op("arith.negf", x)
    if is_complex(value):
        return b.op("complex.neg", x)
    return b.op("arith.subi", b.constant(0, x.dtype), x)


def absolute(b: ElementBuilder, op: Op) -> Scalar:
    """Take the absolute value."""
    value = op.operands[0]
    x = b.operand(0)
    if is_float(value):
        return b.op("math.absf", x)
    if is_complex(value):
        return b.op("complex.abs", x, dtype=kernel_type(element_type(op.results[0])))
    if is_unsigned(value):
        return x
    zero = b.constant(0, x.dtype)
    is_positive = b.op("arith.cmpi", x, zero, dtype="i1", predicate="sge")
    return b.op("arith.select", is_positive, x, b.op("arith.subi", zero, x), dtype=x.dtype)


def sign(b: ElementBuilder, op: Op) -> Scalar:
    """Take the sign; floats keep zeros with theirs and NaNs."""
    value = op.operands[0]
    x = b.operand(0)
    if is_float(value):
        wide = widen_small_float(b, x)
        differs = b.op("arith.cmpf", wide, b.constant(0, wide.dtype), dtype="i1", predicate="one")
        one = b.op("arith.uitofp", differs, dtype=x.dtype)
        signed = b.op("math.copysign", one, x)
        is_nan = b.op("arith.cmpf", x, x, dtype="i1", predicate="uno")
        return b.op("arith.select", is_nan, x, signed, dtype=x.dtype)
    if is_complex(value):
        return b.op("complex.sign", x)
    zero = b.constant(0, x.dtype)
    is_zero = b.op("arith.cmpi", x, zero, dtype="i1", predicate="eq")
    if is_unsigned(value):
        return b.op("arith.select", is_zero, zero, b.constant(1, x.dtype), dtype=x.dtype)
    spread = b.op("arith.shrsi", x, b.constant(width(value) - 1, x.dtype))
    signed = b.op("arith.ori", spread, b.constant(1, x.dtype))
    return b.op("arith.select", is_zero, zero, signed, dtype=x.dtype)


def shift(name: str, b: ElementBuilder, op: Op) -> Scalar:
    """Shift; amounts of the width or more leave nothing but, for arithmetic shifts, the sign."""
    x, amount = operands(b, op)
    bits = width(op.operands[0])
    inside = b.op("arith.cmpi", amount, b.constant(bits, amount.dtype), dtype="i1", predicate="ult")
    shifted = b.op(name, x, amount)
    is_arithmetic = name == "arith.shrsi"
    rest = b.op(name, x, b.constant(bits - 1, x.dtype)) if is_arithmetic else b.constant(0, x.dtype)
    return b.op("arith.select", inside, shifted, rest, dtype=x.dtype)


def invert(b: ElementBuilder, op: Op) -> Scalar:
    """Invert all bits; booleans are compared with zero."""
    x = b.operand(0)
    if is_boolean(op.operands[0]):
        return as_boolean(b, b.op("arith.cmpi", x, b.constant(0, x.dtype), dtype="i1", predicate="eq"))
    return b.op("arith.xori", x, b.constant(-1, x.dtype))


_FLOAT = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


_INTEGER = {"LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def compare(b: ElementBuilder, op: Op) -> Scalar:
    """Compare; NaNs differ from everything."""
    left, right = operands(b, op)
    value = op.operands[0]
    direction = case_of(op, "comparison_direction")
    if is_complex(value):
        name = "complex.eq" if direction == "EQ" else "complex.neq"
        return as_boolean(b, b.op(name, left, right, dtype="i1"))
    if is_float(value):
        if case_of(op, "compare_type") == "TOTALORDER":
            left, right = (_total_order(b, item, width(value)) for item in (left, right))
            predicate = {"EQ": "eq", "NE": "ne"}.get(direction) or f"s{_INTEGER[direction]}"
            return as_boolean(b, b.op("arith.cmpi", left, right, dtype="i1", predicate=predicate))
        return as_boolean(b, b.op("arith.cmpf", left, right, dtype="i1", predicate=_FLOAT[direction]))
    order = "u" if is_unsigned(value) else "s"
    predicate = {"EQ": "eq", "NE": "ne"}.get(direction) or f"{order}{_INTEGER[direction]}"
    return as_boolean(b, b.op("arith.cmpi", left, right, dtype="i1", predicate=predicate))


def _total_order(b: ElementBuilder, x: Scalar, bits: int) -> Scalar:
    """Return an integer that is ordered as a float in the total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    integer = b.op("arith.bitcast", x, dtype=f"i{bits}")
    negative = b.op("arith.cmpi", integer, b.constant(0, integer.dtype), dtype="i1", predicate="slt")
    flipped = b.op("arith.xori", integer, b.constant((1 << (bits - 1)) - 1, integer.dtype))
    return b.op("arith.select", negative, flipped, integer, dtype=integer.dtype)


def select(b: ElementBuilder, op: Op) -> Scalar:
    """Choose one of two values."""
    condition, then, otherwise = operands(b, op)
    return b.op("arith.select", as_condition(b, condition), then, otherwise, dtype=then.dtype)


def clamp(b: ElementBuilder, op: Op) -> Scalar:
    """Bring a value between two others."""
    low, x, high = operands(b, op)
    larger, smaller = _EXTREMA[_kind(op)]
    return b.op(smaller, b.op(larger, x, low), high)


_EXTREMA = {
    "float": ("arith.maximumf", "arith.minimumf"),
    "signed": ("arith.maxsi", "arith.minsi"),
    "unsigned": ("arith.maxui", "arith.minui"),
}


def _kind(op: Op) -> str:
    value = op.results[0]
    if is_float(value):
        return "float"
    return "unsigned" if is_unsigned(value) else "signed"
