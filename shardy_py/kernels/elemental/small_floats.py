"""Arithmetic on floats of 8 bits: computed as ``f32`` and rounded, as no processor has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardy_py.kernels.dialect.types import is_small_float
from shardy_py.plugins import ElementBuilder, Scalar

_OF_BITS = ("arith.bitcast", "arith.extf", "arith.select", "arith.truncf")
"""Ops that move the bits of a float, or convert them."""


def is_widened(name: str, operands: Sequence[Scalar], dtype: str | None) -> bool:
    """Return whether an op on floats of 8 bits is one on ``f32``."""
    types = (*(operand.dtype for operand in operands), dtype or "")
    return name not in _OF_BITS and any(map(is_small_float, types))


def widened(
    b: ElementBuilder, name: str, operands: Sequence[Scalar], dtype: str | None, attributes: Mapping[str, Any]
) -> Scalar:
    """Return the result of an op that computes with ``f32``."""
    small = dtype or operands[0].dtype
    wide = [b.op("arith.extf", item, dtype="f32") if is_small_float(item.dtype) else item for item in operands]
    if name == "arith.cmpf" or not is_small_float(small):
        return b.op(name, *wide, dtype=dtype, **attributes)
    return b.op("arith.truncf", b.op(name, *wide, dtype="f32", **attributes), dtype=small)
