"""Ops of ``arith`` that no processor has, as sequences of others: divisions that do not round to zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from shardy_py.plugins import ElementBuilder, Scalar


def floor_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding down."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    wrong = b.op("arith.andi", _differs(b, rest), _signs_differ(b, rest, right))
    return b.op("arith.subi", quotient, b.op("arith.extui", wrong, dtype=left.dtype))


def ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers with a sign, rounding up."""
    quotient, rest = b.op("arith.divsi", left, right), b.op("arith.remsi", left, right)
    same = b.op("arith.xori", _signs_differ(b, rest, right), b.constant(1, "i1"))
    wrong = b.op("arith.andi", _differs(b, rest), same)
    return b.op("arith.addi", quotient, b.op("arith.extui", wrong, dtype=left.dtype))


def unsigned_ceiling_division(b: ElementBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Divide integers without a sign, rounding up."""
    quotient, rest = b.op("arith.divui", left, right), b.op("arith.remui", left, right)
    return b.op("arith.addi", quotient, b.op("arith.extui", _differs(b, rest), dtype=left.dtype))


def _differs(b: ElementBuilder, rest: Scalar) -> Scalar:
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
