"""Numbers and arrays of numbers as native attributes, in the width of the attribute that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib.mlir import ir

_Limits = tuple[int, int]


def _signed(width: int) -> _Limits:
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


_ARRAYS: Mapping[Any, _Limits | None] = {
    ir.DenseI8ArrayAttr: _signed(8),
    ir.DenseI16ArrayAttr: _signed(16),
    ir.DenseI32ArrayAttr: _signed(32),
    ir.DenseI64ArrayAttr: _signed(64),
    ir.DenseF32ArrayAttr: None,
    ir.DenseF64ArrayAttr: None,
}
"""The classes of arrays to the least and the largest number in them; None for floats."""


def number_like(value: Any, like: ir.Attribute) -> ir.Attribute | None:
    """Return a number, or an array of numbers, of the type of another one.

    Args:
        value: An attribute of the graph.
        like: The native attribute that it replaces.

    Returns:
        None where one of them is something else, or where the number does not fit the type.
    """
    if isinstance(value, (tuple, list)):
        kind = type(like)
        if kind not in _ARRAYS or not all(_fits(item, _ARRAYS[kind]) for item in value):
            return None
        return kind.get(list(value), like.context)
    if isinstance(like, ir.IntegerAttr) and _fits(value, _limits_of(like.type)):
        return ir.IntegerAttr.get(like.type, value)
    if isinstance(like, ir.FloatAttr) and _fits(value, None):
        return ir.FloatAttr.get(like.type, float(value), ir.Location.unknown(like.context))
    return None


def _fits(value: Any, limits: _Limits | None) -> bool:
    """Return whether a value is an integer within limits, or any number where there are none."""
    if isinstance(value, bool):
        return False
    if limits is None:
        return isinstance(value, (int, float))
    return isinstance(value, int) and limits[0] <= value <= limits[1]


def _limits_of(type_: ir.Type) -> _Limits:
    # The bindings take integers of eight bytes.
    width = min(type_.width, 64) if isinstance(type_, ir.IntegerType) else 64
    if isinstance(type_, ir.IntegerType) and type_.is_unsigned:
        return 0, (1 << min(width, 63)) - 1
    return _signed(width)
