"""Floating-point numbers of ``arith``: types of 16 bits are computed in ``f32`` and rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation

from shardy_py.kernels.elemental.scalars import FLOAT_PREDICATES
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import Array, rounded


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
    found = _ORDERED[name[1:]](left, right)
    return found | (left != left) | (right != right) if name[0] == "u" else found


def cmpf(frame: Frame, op: arith.CmpfOp) -> list[Value]:
    """Compare two floats."""
    left, right = frame.gets(op.operands)
    return [compare(FLOAT_PREDICATES[op.predicate.value.data], left, right)]


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
    }
)
