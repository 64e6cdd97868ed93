"""Conversions between the types of ``arith``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Operation

from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.integers import signed, unsigned
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import (
    Array,
    array_dtype,
    from_words,
    integer_bits,
    is_bfloat16,
    round_to_bfloat16,
    rounded,
    to_words,
)


def _as_type(x: Array, op: Operation) -> list[Value]:
    dtype = np.dtype(array_dtype(op.results[0].type))
    return [(x & 1).astype(dtype) if dtype.kind == "b" else x.astype(dtype)]


def from_signed(frame: Frame, op: Operation) -> list[Value]:
    """Return an integer of another width; what is added has the sign's bit."""
    return _as_type(signed(frame.get(op.operands[0])), op)


def from_unsigned(frame: Frame, op: Operation) -> list[Value]:
    """Return an integer of another width; what is added is zero."""
    return _as_type(unsigned(frame.get(op.operands[0])), op)


def _float_of(x: Array, op: Operation) -> list[Value]:
    type_ = op.results[0].type
    wide = np.float64 if array_dtype(type_) is np.float64 else np.float32
    return [rounded(x.astype(wide), type_)]


def sitofp(frame: Frame, op: Operation) -> list[Value]:
    """Return an integer with a sign as a float; types of 16 bits are rounded from ``f32``."""
    return _float_of(signed(frame.get(op.operands[0])), op)


def uitofp(frame: Frame, op: Operation) -> list[Value]:
    """Return an integer without a sign as a float; types of 16 bits are rounded from ``f32``."""
    return _float_of(unsigned(frame.get(op.operands[0])), op)


def _integer_of(x: Array, op: Operation, least: int, most: int) -> list[Value]:
    """Return floats without their fraction; what does not fit is undefined, here the least integer of the type."""
    dtype = np.dtype(array_dtype(op.results[0].type))
    undefined = -(1 << (integer_bits(dtype) - 1))
    truncated = np.trunc(x.astype(np.float64))
    fits = (truncated >= least) & (truncated < most + 1)
    safe = np.where(fits, truncated, 0)
    integers: Any = safe.astype(np.uint64).view(np.int64) if least == 0 else safe.astype(np.int64)
    return [np.where(fits, integers, undefined).astype(dtype)]


def fptosi(frame: Frame, op: Operation) -> list[Value]:
    """Return a float as an integer with a sign."""
    bits = integer_bits(array_dtype(op.results[0].type))
    return _integer_of(frame.get(op.operands[0]), op, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def fptoui(frame: Frame, op: Operation) -> list[Value]:
    """Return a float as an integer without a sign."""
    bits = integer_bits(array_dtype(op.results[0].type))
    return _integer_of(frame.get(op.operands[0]), op, 0, (1 << bits) - 1)


def extf(frame: Frame, op: Operation) -> list[Value]:
    """Return a float in a wider type."""
    return [frame.get(op.operands[0]).astype(array_dtype(op.results[0].type))]


def truncf(frame: Frame, op: Operation) -> list[Value]:
    """Return a float in a narrower type, to the nearest, halves to even."""
    x, type_ = frame.get(op.operands[0]), op.results[0].type
    if x.dtype != np.float64:
        return [rounded(x, type_)]
    if isinstance(type_, builtin.Float8E8M0FNUType):
        # As in XLA: what is below the least power of two is a NaN.
        x = np.where(x < 2.0**-127, np.nan, x)
    return [_bfloat16_of(x) if is_bfloat16(type_) else x.astype(array_dtype(type_))]


def _bfloat16_of(x: Array) -> Array:
    """Round ``f64`` to ``bf16`` once: the step through ``f32`` rounds to odd and so keeps what decides a tie."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    inexact = (near.astype(np.float64) != x) & np.isfinite(near)
    toward_zero = np.where(inexact & beyond, bits - np.uint32(1), bits)
    odd = np.where(inexact, toward_zero | np.uint32(1), bits)
    return round_to_bfloat16(odd.astype(np.uint32).view(np.float32))


def bitcast(frame: Frame, op: Operation) -> list[Value]:
    """Return the same bits as another type."""
    words = to_words(frame.get(op.operands[0]), op.operands[0].type)
    return [from_words(words, op.results[0].type)]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.bitcast": bitcast,
        "arith.extf": extf,
        "arith.extsi": from_signed,
        "arith.extui": from_unsigned,
        "arith.fptosi": fptosi,
        "arith.fptoui": fptoui,
        "arith.index_cast": from_signed,
        "arith.index_castui": from_unsigned,
        "arith.sitofp": sitofp,
        "arith.truncf": truncf,
        "arith.trunci": from_unsigned,
        "arith.uitofp": uitofp,
    }
)
