"""Costs of loops: how often their regions run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_dialects.stablehlo.attributes import case_of
from shardy_dialects.stablehlo.elementwise.ops import ADD, COMPARE, SUBTRACT
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import CostOpInterface


class WhileCost(CostOpInterface):
    """A loop that counts from a constant to a constant runs a known number of times."""

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the runs of the condition, one more than of the body, and those of the body."""
        trips = trip_count(op)
        return (None, None) if trips is None else (trips + 1, trips)


def trip_count(op: Op) -> int | None:
    """Return the number of runs of the body of a ``while``; None where constants do not give it."""
    condition, body = (region.blocks[0] for region in op.regions)
    end, next_ = condition.terminator, body.terminator
    compare = end.operands[0].defining_op if end is not None and end.operands else None
    if compare is None or next_ is None or compare.name != COMPARE:
        return None
    left, right = compare.operands
    direction = case_of(compare, "comparison_direction")
    if left.owner is not condition:
        left, right, direction = right, left, _SWAPPED.get(direction, direction)
    if left.owner is not condition or direction not in _TRIPS:
        return None
    start, bound = _constant(op.operands[left.index]), _constant_in(op, right)
    step = _step(op, body.arguments[left.index], next_.operands[left.index])
    if start is None or bound is None or not step:
        return None
    return _TRIPS[direction](bound - start, step)


def _up_to(distance: int, step: int) -> int | None:
    return max(0, -(-distance // step)) if step > 0 else (0 if distance <= 0 else None)


def _equal(distance: int, step: int) -> int | None:
    trips, rest = divmod(distance, step)
    return trips if rest == 0 and trips >= 0 else None


_TRIPS: dict[str, Callable[[int, int], int | None]] = {
    "LT": _up_to,
    "LE": lambda distance, step: _up_to(distance + 1, step),
    "GT": lambda distance, step: _up_to(-distance, -step),
    "GE": lambda distance, step: _up_to(1 - distance, -step),
    "NE": _equal,
}


_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def _step(op: Op, argument: Value, yielded: Value) -> int | None:
    """Return the step by which each run of the body changes a carried value."""
    producer = yielded.defining_op
    if producer is None or producer.name not in (ADD, SUBTRACT):
        return None
    left, right = producer.operands
    if producer.name == SUBTRACT:
        amount = _constant_in(op, right) if left is argument else None
        return None if amount is None else -amount
    other = right if left is argument else left
    return _constant_in(op, other) if argument in (left, right) else None


def _constant_in(op: Op, value: Value) -> int | None:
    """Return the number that a value in a region of a loop always is: a constant, or carried along unchanged."""
    if not value.is_block_argument or value.owning_op is not op:
        return _constant(value)
    body = op.regions[1].blocks[0]
    end = body.terminator
    is_unchanged = end is not None and end.operands[value.index] is body.arguments[value.index]
    return _constant(op.operands[value.index]) if is_unchanged else None


def _constant(value: Value) -> int | None:
    producer = value.defining_op
    elements = None if producer is None or producer.operands else producer.attributes.get("value")
    return elements.values[0] if isinstance(elements, DenseElements) and len(elements.values) == 1 else None
