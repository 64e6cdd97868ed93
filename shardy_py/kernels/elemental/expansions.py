"""Ops of ``arith`` that no processor has, as sequences of others: divisions that do not round to zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from shardy_py.plugins import ElementBuilder, Scalar


def floor_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding down."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    wrong = b.op("arith.andi", _is_left(b, rest), _signs_differ(b, rest, right))
    return _moved(b, "arith.subi", quotient, wrong)


def ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding up."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    same = b.op("arith.xori", _signs_differ(b, rest, right), b.constant(1, "i1"))
    return _moved(b, "arith.addi", quotient, b.op("arith.andi", _is_left(b, rest), same))


def unsigned_ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers without a sign, rounding up."""
    quotient, rest = b.op("arith.divui", left, right), b.op("arith.remui", left, right)
    return _moved(b, "arith.addi", quotient, _is_left(b, rest))


def _moved(b: ElementBuilder, name: str, quotient: Scalar, wrong: Scalar) -> Scalar:
    """Return a quotient, moved by one where it is wrong."""
    moved = b.op(name, quotient, b.constant(1, quotient.dtype))
    return b.op("arith.select", wrong, moved, quotient, dtype=quotient.dtype)


def _is_left(b: ElementBuilder, rest: Scalar) -> Scalar:
    return b.op("arith.cmpi", rest, b.constant(0, rest.dtype), dtype="i1", predicate="ne")


def _signs_differ(b: ElementBuilder, rest: Scalar, right: Scalar) -> Scalar:
    signs = b.op("arith.xori", rest, right)
    return b.op("arith.cmpi", signs, b.constant(0, signs.dtype), dtype="i1", predicate="slt")


EXPANSIONS: Mapping[str, Callable[[ElementBuilder, Scalar, Scalar], Scalar]] = MappingProxyType(
    {
        "arith.ceildivsi": ceiling_division,
        "arith.ceildivui": unsigned_ceiling_division,
        "arith.floordivsi": floor_division,
    }
)
