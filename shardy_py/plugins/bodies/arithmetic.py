"""Operators of scalar bodies, by the types of their terms; integers divide as numpy's do."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from shardy_py.guards.error_texts import describe_error
from shardy_py.ir.interfaces.emission import ElementBuilder
from shardy_py.plugins.bodies.terms import BOOLEAN, HALVES, Term, alike, mistake
from shardy_py.support.arguments import shown

_SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
# Per operator the op for floats, for integers and for complex numbers.
_OPS = {
    "+": ("arith.addf", "arith.addi", "complex.add"),
    "-": ("arith.subf", "arith.subi", "complex.sub"),
    "*": ("arith.mulf", "arith.muli", "complex.mul"),
    "/": ("arith.divf", "", "complex.div"),
    "&": ("", "arith.andi", ""),
    "|": ("", "arith.ori", ""),
    "^": ("", "arith.xori", ""),
    "<<": ("", "arith.shli", ""),
    ">>": ("", "arith.shrsi", ""),
}
_OF_CONDITIONS = ("&", "|", "^")
_COMPARED = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_MOST_FACTORS = 64
_MOST_BITS = 4096


def symbol(node: ast.operator) -> str:
    """Return an operator as it is written."""
    return _SYMBOLS[type(node)]


def _folded(sign: str, left: Any, right: Any) -> Any:
    """Fold an operator over two numbers of the text.

    Raises:
        PluginError: it is not a number, or one beyond all types.
    """
    if sign == "**" and isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MOST_BITS:
        raise mistake(f"{shown(left)} ** {shown(right)} is a number of more than {_MOST_BITS} bits")
    try:
        return _FOLDED[sign](left, right)
    except (OverflowError, ZeroDivisionError) as error:
        raise mistake(f"{shown(left)} {sign} {shown(right)} is not a number: {describe_error(error)}") from None


def binary(b: ElementBuilder, sign: str, left: Term, right: Term) -> Term:
    """Apply an operator to two terms.

    Raises:
        PluginError: it does not take their types.
    """
    if left.is_number and right.is_number:
        if sign not in _FOLDED or (sign in ("/", "//", "%") and right.number == 0):
            raise mistake(f"{left.number} {sign} {right.number} is not a number")
        return Term(number=_folded(sign, left.number, right.number))
    if sign == "**":
        return power(b, left, right)
    left, right = alike(b, left, right)
    if sign in ("//", "%"):
        return _divided(b, sign, left, right)
    names = _OPS[sign]
    name = names[0] if left.is_float else names[2] if left.is_complex else names[1]
    if sign == ">>" and left.is_unsigned:
        name = "arith.shrui"
    if not name or (left.is_boolean and sign not in _OF_CONDITIONS):
        hint = "integers divide by //" if sign == "/" else f"f32(...) {sign} f32(...)" if left.is_boolean else ""
        raise mistake(f"{left.dtype} has no operator {sign}", hint)
    return Term(left.dtype, b.op(name, left.scalar, right.scalar))


def _divided(b: ElementBuilder, sign: str, left: Term, right: Term) -> Term:
    """Return quotient or remainder, rounded down; of integers by zero it is zero, as numpy has it."""
    if left.dtype in HALVES:
        wide = [Term("f32", b.op("arith.extf", term.scalar, dtype="f32")) for term in (left, right)]
        return Term(left.dtype, b.op("arith.truncf", _float_divided(b, sign, *wide).scalar, dtype=left.dtype))
    if left.is_float:
        return _float_divided(b, sign, left, right)
    if left.is_complex or left.is_boolean:
        raise mistake(f"{left.dtype} has no operator {sign}")
    zero, one = (Term(left.dtype, b.constant(number, left.scalar.dtype)) for number in (0, 1))
    by_zero = compare(b, ast.Eq(), right, zero)
    # No processor promises what the least integer divided by -1 is, so that this is a subtraction.
    minus_one = Term(left.dtype, b.constant(-1, left.scalar.dtype))
    by_minus_one = by_zero if left.is_unsigned else compare(b, ast.Eq(), right, minus_one)
    unsafe = binary(b, "|", by_zero, by_minus_one)
    safe = select(b, unsafe, one, right)
    name = "arith.divui" if left.is_unsigned else "arith.floordivsi"
    quotient = Term(left.dtype, b.op(name, left.scalar, safe.scalar))
    if sign == "//":
        rounded = quotient if left.is_unsigned else select(b, by_minus_one, binary(b, "-", zero, left), quotient)
    else:
        rest = binary(b, "-", left, binary(b, "*", quotient, safe))
        rounded = rest if left.is_unsigned else select(b, by_minus_one, zero, rest)
    return select(b, by_zero, zero, rounded)


def _float_divided(b: ElementBuilder, sign: str, left: Term, right: Term) -> Term:
    """Return quotient or remainder of floats, rounded down; from the exact remainder, as numpy has it.

    A quotient is rounded, so that its floor may be off by one.
    """
    zero = Term(left.dtype, b.constant(0, left.dtype))
    towards_zero = Term(left.dtype, b.op("arith.remf", left.scalar, right.scalar))
    is_exact = compare(b, ast.Eq(), towards_zero, zero)
    is_opposite = binary(b, "^", compare(b, ast.Lt(), right, zero), compare(b, ast.Lt(), towards_zero, zero))
    is_moved = binary(b, "&", is_opposite, compare(b, ast.NotEq(), towards_zero, zero))
    if sign == "%":
        rest = select(b, is_moved, binary(b, "+", towards_zero, right), towards_zero)
        signed_zero = Term(left.dtype, b.op("math.copysign", zero.scalar, right.scalar))
        return select(b, is_exact, signed_zero, rest)
    exact = binary(b, "/", binary(b, "-", left, towards_zero), right)
    exact = select(b, is_moved, binary(b, "-", exact, Term(number=1)), exact)
    below = Term(left.dtype, b.op("math.floor", exact.scalar))
    is_above = compare(b, ast.Gt(), binary(b, "-", exact, below), Term(number=0.5))
    nearest = select(b, is_above, binary(b, "+", below, Term(number=1)), below)
    quotient = binary(b, "/", left, right)
    signed_zero = Term(left.dtype, b.op("math.copysign", zero.scalar, quotient.scalar))
    signed = select(b, compare(b, ast.Eq(), exact, zero), signed_zero, nearest)
    return select(b, compare(b, ast.Eq(), right, zero), quotient, signed)


def power(b: ElementBuilder, left: Term, right: Term) -> Term:
    """Return a power; whole numbers are products, all else is a function of floats."""
    exponent = right.number if right.is_number and not isinstance(right.number, complex) else None
    if exponent is not None and exponent == int(exponent) and 1 <= exponent <= _MOST_FACTORS:
        return _product(b, left, int(exponent))
    if exponent == 0 and not left.is_boolean:
        return alike(b, left, Term(number=1))[1]
    left, right = alike(b, left, right)
    if left.is_float or left.is_complex:
        return Term(left.dtype, b.op("math.powf" if left.is_float else "complex.pow", left.scalar, right.scalar))
    raise mistake(f"{left.dtype} has no such power", "give a whole number, or take powers of f32(...)")


def _product(b: ElementBuilder, base: Term, count: int) -> Term:
    """Return the product of equal factors, by squares."""
    product: Term | None = None
    while count:
        if count % 2:
            product = base if product is None else binary(b, "*", product, base)
        count //= 2
        base = binary(b, "*", base, base) if count else base
    assert product is not None
    return product


def compare(b: ElementBuilder, node: ast.cmpop, left: Term, right: Term) -> Term:
    """Return whether a comparison holds; NaNs differ from everything."""
    left, right = alike(b, left, right)
    if left.is_number:
        raise mistake("two numbers are compared")
    word = _COMPARED[type(node)]
    if left.is_complex:
        if word not in ("eq", "ne"):
            raise mistake(f"{left.dtype} has no order", "compare real(x), or abs(x)")
        name = "complex.eq" if word == "eq" else "complex.neq"
        return Term(BOOLEAN, b.op(name, left.scalar, right.scalar, dtype=BOOLEAN))
    if left.is_float:
        predicate = "une" if word == "ne" else f"o{word}"
        return Term(BOOLEAN, b.op("arith.cmpf", left.scalar, right.scalar, dtype=BOOLEAN, predicate=predicate))
    order = "" if word in ("eq", "ne") else "u" if left.is_unsigned or left.is_boolean else "s"
    comparison = b.op("arith.cmpi", left.scalar, right.scalar, dtype=BOOLEAN, predicate=f"{order}{word}")
    return Term(BOOLEAN, comparison)


def negate(b: ElementBuilder, term: Term) -> Term:
    """Change the sign."""
    if term.is_number:
        return Term(number=-term.number)
    if term.is_float or term.is_complex:
        return Term(term.dtype, b.op("arith.negf" if term.is_float else "complex.neg", term.scalar))
    return binary(b, "-", Term(number=0), term)


def invert(b: ElementBuilder, term: Term) -> Term:
    """Invert a condition, or all bits of an integer."""
    if term.is_boolean or term.is_integer:
        return binary(b, "^", term, Term(term.dtype, b.constant(1 if term.is_boolean else -1, term.scalar.dtype)))
    raise mistake(f"{term.dtype or term.number} is not a condition", "compare it: x != 0")


def select(b: ElementBuilder, condition: Term, then: Term, otherwise: Term) -> Term:
    """Return one of two terms, both of which are computed."""
    if not condition.is_boolean:
        raise mistake(f"{condition.dtype or condition.number} is not a condition", "compare it: x != 0")
    then, otherwise = alike(b, then, otherwise)
    chosen = b.op("arith.select", condition.scalar, then.scalar, otherwise.scalar, dtype=then.scalar.dtype)
    return Term(then.dtype, chosen)
