"""Functions of ``math``: computed in ``f64``, then rounded, so that nearly every ``f32`` is the nearest one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.ir import Operation

from shardy_py.kernels.run.floats import exact
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.integers import signed, unsigned, wrapped
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.packed import integer_bits
from shardy_py.kernels.run.values import Array, rounded


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
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x), x)


def bit_length(x: Array) -> Array:
    """Return the number of bits up to the highest one that is set."""
    left, found = x.astype(np.uint64), np.zeros(np.shape(x), np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        more = (left >> np.uint64(step) != 0).astype(np.uint64) * np.uint64(step)
        found, left = found + more, left >> more
    return found + (left != 0).astype(np.uint64)


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
