"""Integers that constants tell: starts of slices and indices, also where a few scalar ops compute them."""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo.local.device import elements_of, fits_type, fold_integers, has_integers
from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape

_MOST_ELEMENTS = 16
"""The size beyond which a tensor is no start and no index of one window."""
_MOST_DEPTH = 8
"""JAX computes an index by three ops: a comparison with 0, an addition of the size, and a choice."""


def known_integers(value: Value, depth: int = 0) -> tuple[int, ...] | None:
    """Return the elements of a small tensor of integers that follow from constants; None where they are not known.

    Args:
        value: The tensor.
        depth: The number of ops that were looked through already.
    """
    shape, producer = static_shape(value.type), value.defining_op
    if not has_integers(value.type):
        return None
    if shape is None or producer is None or prod(shape) > _MOST_ELEMENTS or depth > _MOST_DEPTH:
        return None
    splat = splat_of(value)
    if splat is not None:
        return (int(splat),) * prod(shape) if splat == int(splat) else None
    if producer.name.endswith(".constant"):
        held = producer.attributes.get("value")
        return elements_of(held) if isinstance(held, DenseElements) else None
    operands = [known_integers(item, depth + 1) for item in producer.operands]
    known = [item for item in operands if item is not None]
    if not operands or len(known) < len(operands):
        return None
    return _folded(producer, known, value)


def _folded(op: Op, operands: list[tuple[int, ...]], value: Value) -> tuple[int, ...] | None:
    """Return what an op makes of known operands."""
    count = prod(static_shape(value.type) or ())
    if op.name in (RESHAPE, "stablehlo.convert"):
        return operands[0] if all(fits_type(item, value.type) for item in operands[0]) else None
    if op.name == BROADCAST:
        return operands[0] * count if len(operands[0]) == 1 else None
    if op.name == "stablehlo.concatenate" and len(value.shape) == 1:
        return tuple(number for item in operands for number in item)
    if any(len(item) != 1 for item in operands) or count != 1:
        return None
    number = fold_integers(op, [item[0] for item in operands])
    return None if number is None or not fits_type(number, value.type) else (number,)
