"""Floating-point numbers of ``arith`` and functions of ``math``.

Types of 16 bits are computed in ``f32`` and rounded; functions in ``f64``, so that nearly every ``f32`` is the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation

from shardy_py.kernels.elemental.scalars import FLOAT_PREDICATES
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.integers import signed, unsigned, wrapped
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import Array, integer_bits, rounded


def computed(x: Array) -> Array:
    """Return floats in the type that computes with them: ``f32``, or ``f64``."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def rounding(compute: Callable[..., Any]) -> Handler:
    """Return what runs an op on floats whose result is rounded to the type."""

    def run(frame: Frame, op: Operation) -> list[Value]:
        values = [computed(x) for x in frame.gets(op.operands)]
        return [rounded(compute(*values), op.results[0].type)]

    return run


def exact(compute: Callable[..., Any]) -> Handler:
    """Return what runs an op on floats whose result the type always holds."""

    def run(frame: Frame, op: Operation) -> list[Value]:
        return [compute(*frame.gets(op.operands))]

    return run


def maximum(left: Array, right: Array) -> Array:
    """Return the larger number; a NaN if one is, and 0 rather than -0."""
    both = (left == 0) & (right == 0)
    return np.where(both, left + right, np.maximum(left, right))


def minimum(left: Array, right: Array) -> Array:
    """Return the smaller number; a NaN if one is, and -0 rather than 0."""
    return -maximum(-left, -right)


_ORDERED: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "eq": np.equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "lt": np.less,
        "le": np.less_equal,
        "ne": lambda left, right: (left < right) | (left > right),
    }
)


def compare(name: str, left: Array, right: Array) -> Array:
    """Return whether a predicate holds: one that begins with ``u`` also holds where an operand is NaN."""
    if name in ("false", "true"):
        return np.full(np.broadcast_shapes(np.shape(left), np.shape(right)), name == "true")
    if name == "ord":
        return (left == left) & (right == right)
    if name == "uno":
        return (left != left) | (right != right)
    holds = _ORDERED[name[1:]](left, right)
    return holds | (left != left) | (right != right) if name[0] == "u" else holds


def cmpf(frame: Frame, op: arith.CmpfOp) -> list[Value]:
    """Compare two floats."""
    left, right = frame.gets(op.operands)
    return [compare(FLOAT_PREDICATES[op.predicate.value.data], left, right)]


def wide(compute: Callable[..., Any]) -> Handler:
    """Return what runs a function of floats in ``f64``."""

    def run(frame: Frame, op: Operation) -> list[Value]:
        values = [x.astype(np.float64) for x in frame.gets(op.operands)]
        return [rounded(compute(*values), op.results[0].type)]

    return run


def erf(x: Array) -> Array:
    """Return the error function."""
    flat = np.ravel(x)
    return np.fromiter(map(math.erf, flat.tolist()), np.float64, len(flat)).reshape(np.shape(x))


def round_half_away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    truncated = np.trunc(x)
    return np.copysign(truncated + np.copysign((np.abs(x - truncated) >= 0.5).astype(x.dtype), x), x)


def bit_length(x: Array) -> Array:
    """Return the number of bits up to the highest one that is set."""
    remaining, length = x.astype(np.uint64), np.zeros(np.shape(x), np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        more = (remaining >> np.uint64(step) != 0).astype(np.uint64) * np.uint64(step)
        length, remaining = length + more, remaining >> more
    return length + (remaining != 0).astype(np.uint64)


def count_ones(x: Array) -> Array:
    """Return the number of bits that are set."""
    x = x.astype(np.uint64)
    for mask, step in ((0x5555555555555555, 1), (0x3333333333333333, 2), (0x0F0F0F0F0F0F0F0F, 4)):
        x = (x & np.uint64(mask)) + (x >> np.uint64(step) & np.uint64(mask))
    return x * np.uint64(0x0101010101010101) >> np.uint64(56)


def _of_bits(compute: Callable[[Any, int], Any]) -> Handler:
    def run(frame: Frame, op: Operation) -> list[Value]:
        x = frame.get(op.operands[0])
        return [wrapped(compute(unsigned(x), integer_bits(x.dtype)), x)]

    return run


def _trailing_zeros(x: Array, bits: int) -> Array:
    lowest = x & (~x + x.dtype.type(1))
    return np.where(x == 0, np.uint64(bits), bit_length(lowest) - np.uint64(1))


def absi(frame: Frame, op: Operation) -> list[Value]:
    """Return the amount of an integer; the least one stays."""
    x = frame.get(op.operands[0])
    return [wrapped(np.abs(signed(x)), x)]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "arith.addf": rounding(np.add),
        "arith.cmpf": cmpf,
        "arith.divf": rounding(np.divide),
        "arith.maximumf": exact(maximum),
        "arith.maxnumf": exact(np.fmax),
        "arith.minimumf": exact(minimum),
        "arith.minnumf": exact(np.fmin),
        "arith.mulf": rounding(np.multiply),
        "arith.negf": exact(np.negative),
        "arith.remf": exact(np.fmod),
        "arith.subf": rounding(np.subtract),
        "math.absf": exact(np.abs),
        "math.absi": absi,
        "math.acos": wide(np.arccos),
        "math.acosh": wide(np.arccosh),
        "math.asin": wide(np.arcsin),
        "math.asinh": wide(np.arcsinh),
        "math.atan": wide(np.arctan),
        "math.atan2": wide(np.arctan2),
        "math.atanh": wide(np.arctanh),
        "math.cbrt": wide(np.cbrt),
        "math.ceil": exact(np.ceil),
        "math.copysign": exact(np.copysign),
        "math.cos": wide(np.cos),
        "math.cosh": wide(np.cosh),
        "math.ctlz": _of_bits(lambda x, bits: np.uint64(bits) - bit_length(x)),
        "math.ctpop": _of_bits(lambda x, _: count_ones(x)),
        "math.cttz": _of_bits(_trailing_zeros),
        "math.erf": wide(erf),
        "math.exp": wide(np.exp),
        "math.exp2": wide(np.exp2),
        "math.expm1": wide(np.expm1),
        "math.floor": exact(np.floor),
        "math.fma": wide(lambda x, y, z: x * y + z),
        "math.log": wide(np.log),
        "math.log10": wide(np.log10),
        "math.log1p": wide(np.log1p),
        "math.log2": wide(np.log2),
        "math.powf": wide(np.power),
        "math.round": exact(round_half_away),
        "math.roundeven": exact(np.rint),
        "math.rsqrt": wide(lambda x: 1 / np.sqrt(x)),
        "math.sin": wide(np.sin),
        "math.sinh": wide(np.sinh),
        "math.sqrt": wide(np.sqrt),
        "math.tan": wide(np.tan),
        "math.tanh": wide(np.tanh),
        "math.trunc": exact(np.trunc),
    }
)
