"""Ops that hand on one of their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.elementwise.ops import SELECT
from shardy_dialects.stablehlo.shape import BROADCAST, RESHAPE
from shardy_dialects.stablehlo.slicing import CONCATENATE, SLICE
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value

Simplification = Callable[[Op], "Value | None"]
"""Returns the value that an op's result is, or None; it may add ops before the op."""


def _same_type(op: Op) -> Value | None:
    """Return the operand of an op that changes nothing but the type, where it does not change it."""
    return op.operands[0] if op.operands[0].type == op.result.type else None


def _in_order(name: str, op: Op) -> Value | None:
    """Return the operand where the dimensions in an attribute are those of the result, in order."""
    dims = integers_of(op, name)
    return _same_type(op) if dims == tuple(range(len(dims))) else None


def _without_padding(op: Op) -> Value | None:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return None if any(any(integers_of(op, name)) for name in names) else op.operands[0]


def _over_no_dimension(op: Op) -> Value | None:
    return op.operands[0] if len(op.operands) == 2 and not integers_of(op, "dimensions") else None


def _of_one(op: Op) -> Value | None:
    return op.operands[0] if len(op.operands) == 1 else None


def _neutral(number: float, *, commutes: bool = True) -> Simplification:
    """Return what gives the operand beside a constant that is neutral."""
    return partial(_beside_neutral, number, commutes)


def _beside_neutral(number: float, commutes: bool, op: Op) -> Value | None:
    left, right = op.operands
    if splat_of(right) == number:
        return left
    return right if commutes and splat_of(left) == number else None


def _all_ones(op: Op) -> Value | None:
    """Return the operand of a conjunction beside one that is true throughout."""
    type_ = op.result.type
    return _beside_neutral(1, True, op) if getattr(type_, "element_type", "") == "i1" else None


def _chosen(op: Op) -> Value | None:
    """Return what is selected where it is the same throughout."""
    predicate, on_true, on_false = op.operands
    number = splat_of(predicate)
    if on_true is on_false or number == 1:
        return on_true
    return on_false if number == 0 else None


FORWARDING: Mapping[str, Simplification] = {
    "stablehlo.add": _neutral(0),
    "stablehlo.and": _all_ones,
    BROADCAST: partial(_in_order, "broadcast_dimensions"),
    CONCATENATE: _of_one,
    "stablehlo.convert": _same_type,
    "stablehlo.multiply": _neutral(1),
    "stablehlo.or": _neutral(0),
    "stablehlo.pad": _without_padding,
    "stablehlo.reduce": _over_no_dimension,
    RESHAPE: _same_type,
    SELECT: _chosen,
    SLICE: _same_type,
    "stablehlo.subtract": _neutral(0, commutes=False),
    "stablehlo.transpose": partial(_in_order, "permutation"),
}
"""Op name to what returns the operand, or None."""
