"""Integers of ``arith``: they wrap; ops without a sign read the same bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation

from shardy_py.kernels.elemental.scalars import GUARD, INTEGER_PREDICATES, exponent_bits
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import Array, chosen, integer_bits, low_bits, narrow_bits, rank_of

Binary = Callable[[Any, Any], Any]


def signed(x: Array) -> Array:
    """Return integers with their sign; the one bit of a condition is it."""
    if x.dtype.kind == "b":
        return -x.astype(np.int8)
    return x if narrow_bits(x.dtype) is None else x.astype(np.int8)


def unsigned(x: Array) -> Array:
    """Return the bits as integers without a sign."""
    if x.dtype.kind == "b":
        return x.astype(np.uint8)
    return x.view(f"u{x.dtype.itemsize}") if narrow_bits(x.dtype) is None else low_bits(x)


def wrapped(x: Array, like: Array) -> Array:
    """Return integers as arrays of the type of others hold them."""
    return (x & 1).astype(np.bool_) if like.dtype.kind == "b" else x.astype(like.dtype)


def binary(compute: Binary, *, sign: bool = True) -> Handler:
    """Return what runs an op on two integers.

    Args:
        compute: The operation.
        sign: Whether it reads a sign.
    """
    read = signed if sign else unsigned

    def run(frame: Frame, op: Operation) -> list[Value]:
        left, right = frame.gets(op.operands)
        return [wrapped(compute(read(left), read(right)), left)]

    return run


def division(compute: Binary, *, sign: bool = True, by_zero: Binary | None = None) -> Handler:
    """Return what runs a division; an active thread must not divide by zero.

    Args:
        compute: The operation.
        sign: Whether it reads a sign.
        by_zero: What an op that is marked to have a result everywhere gives there; None where the mark says nothing.
    """
    read = signed if sign else unsigned

    def run(frame: Frame, op: Operation) -> list[Value]:
        left, right = frame.gets(op.operands)
        is_safe = right != 0
        if by_zero is not None and GUARD in op.attributes:
            safe = np.where(is_safe, read(right), np.ones_like(read(right)))
            return [wrapped(np.where(is_safe, compute(read(left), safe), by_zero(read(left), safe)), left)]
        each = is_safe if np.ndim(is_safe) <= 1 and not rank_of(op.results[0].type) else is_safe.all(axis=-1)
        frame.require(each, op, "division-by-zero", "divides by zero")
        safe = np.where(is_safe, read(right), np.ones_like(read(right)))
        return [wrapped(compute(read(left), safe), left)]

    return run


def _truncated(left: Any, right: Any) -> Any:
    quotient = left // right
    return quotient + ((quotient * right != left) & ((left < 0) != (right < 0)))


def _ceiling(left: Any, right: Any) -> Any:
    quotient = left // right
    return quotient + (quotient * right != left)


def _all_bits(left: Any, right: Any) -> Any:
    return ~np.zeros_like(left)


def _dividend(left: Any, right: Any) -> Any:
    return left


def shift(compute: Binary, *, sign: bool = False) -> Handler:
    """Return the handler of a shift; the amount is taken modulo the width, as on most processors.

    One that is marked to have a result everywhere leaves no bit behind the width, or the sign.
    """
    read = signed if sign else unsigned

    def run(frame: Frame, op: Operation) -> list[Value]:
        left, right = frame.gets(op.operands)
        is_guarded = GUARD in op.attributes
        if left.dtype.kind == "b":
            return [left & ~right if is_guarded and not sign else left]
        integers, last = read(left), integer_bits(left.dtype) - 1
        amount = (unsigned(right) & last).astype(integers.dtype)
        result = compute(integers, amount)
        if is_guarded:
            result = np.where(
                unsigned(right) <= last, result, compute(integers, integers.dtype.type(last)) if sign else 0
            )
        return [wrapped(result, left)]

    return run


def power(frame: Frame, op: Operation) -> list[Value]:
    """Raise to a power: the last bits of an exponent count; a negative one leaves 1, -1 or 0 of the fraction."""
    left, right = frame.gets(op.operands)
    base, exponent = signed(left), signed(right)
    total, factor = np.ones_like(base), base
    for number in range(exponent_bits(integer_bits(left.dtype))):
        is_set = (exponent >> exponent.dtype.type(number)) & 1
        total, factor = np.where(is_set, total * factor, total), factor * factor
    fraction = np.where(np.abs(base) == 1, np.where(exponent & 1, base, 1), 0)
    return [wrapped(np.where(exponent < 0, fraction, total), left)]


_COMPARE: Mapping[str, Binary] = MappingProxyType(
    {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
)


def cmpi(frame: Frame, op: arith.CmpiOp) -> list[Value]:
    """Compare two integers."""
    left, right = frame.gets(op.operands)
    name = INTEGER_PREDICATES[op.predicate.value.data]
    read = unsigned if name[0] == "u" else signed
    return [_COMPARE[name[-2:]](read(left), read(right))]


def select(frame: Frame, op: Operation) -> list[Value]:
    """Take one of two values."""
    condition, then, otherwise = frame.gets(op.operands)
    rank = rank_of(op.results[0].type)
    if not rank:
        return [frame.merged(condition, then, otherwise, op.results[0])]
    if rank_of(op.operands[0].type):
        return [np.where(condition, then, otherwise)]
    return [chosen(condition, then, otherwise, rank)]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.addi": binary(np.add),
        "arith.andi": binary(np.bitwise_and),
        "arith.ceildivsi": division(_ceiling),
        "arith.ceildivui": division(_ceiling, sign=False),
        "arith.cmpi": cmpi,
        "arith.divsi": division(_truncated, by_zero=_all_bits),
        "arith.divui": division(np.floor_divide, sign=False, by_zero=_all_bits),
        "arith.floordivsi": division(np.floor_divide),
        "arith.maxsi": binary(np.maximum),
        "arith.maxui": binary(np.maximum, sign=False),
        "arith.minsi": binary(np.minimum),
        "arith.minui": binary(np.minimum, sign=False),
        "arith.muli": binary(np.multiply),
        "arith.ori": binary(np.bitwise_or),
        "arith.remsi": division(np.fmod, by_zero=_dividend),
        "arith.remui": division(np.fmod, sign=False, by_zero=_dividend),
        "arith.select": select,
        "arith.shli": shift(np.left_shift),
        "arith.shrsi": shift(np.right_shift, sign=True),
        "arith.shrui": shift(np.right_shift),
        "arith.subi": binary(np.subtract),
        "arith.xori": binary(np.bitwise_xor),
        "math.ipowi": power,
    }
)
