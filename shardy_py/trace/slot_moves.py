"""Moves in terms of a trace: slots, dimensions and visits."""

from __future__ import annotations

from shardy_py.propagation.trace import SchedulePosition
from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.step import StepExplanation
from shardy_py.values import frozen

GROUP = "group"
"""The direction of a move from one member of a sharding group to another."""


@frozen
class SlotMove:
    """A move of an axis from a dimension of one slot to a dimension of another one.

    Args:
        slot: The slot that got the axis.
        dimension: The dimension that got it.
        source: The slot it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part of it that moved.
        step: The step (see `Visit.step`); for a sharding group, the one that changed another member.
        visit: The number of the visit.
        place: The user priority, the level, and the strategy.
        factor: The factor of the step's rule; -1 for a sharding group.
        direction: ``forward``, ``backward``, ``sideways``, or ``group``.
    """

    slot: int
    dimension: int
    source: int
    source_dimension: int
    axis: AxisRef
    step: int
    visit: int
    place: SchedulePosition
    factor: int
    direction: str


def direction_of(explanation: StepExplanation, source: int, target: int) -> str:
    """Return the direction of a move from one tensor of a step to another."""
    split = len(explanation.old.operands)
    if (source < split) == (target < split):
        return "sideways"
    return "forward" if source < split else "backward"


def dimension_of(explanation: StepExplanation, position: int, factor: int) -> int:
    """Return the dimension of a tensor of a step that a factor belongs to.

    Raises:
        ValueError: none.
    """
    dimension = explanation.index.dimensions[position].get(factor)
    if dimension is None:
        raise ValueError(f"tensor {position} has no factor {factor}")
    return dimension
