"""Slots of a trace: their dimensions, and the moves and refusals of axes between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.propagation.trace import SchedulePosition
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason
from shardy_py.trace.step import StepExplanation
from shardy_py.values import frozen

SlotDim = tuple[int, int]
"""A slot and one of its dimensions."""


def slot_dim_of(slots: Sequence[int], mappings: Sequence[TensorMapping], position: int, factor: int) -> SlotDim | None:
    """Return the dimension of a tensor of a step that has a factor, or None."""
    if slots[position] < 0:
        return None
    for dimension, factors in enumerate(mappings[position]):
        if factor in factors:
            return slots[position], dimension
    return None


def slot_dims_with(slots: Sequence[int], mappings: Sequence[TensorMapping], factor: int) -> Iterator[SlotDim]:
    """Yield the dimensions of the tensors of a step that have a factor."""
    for position in range(len(slots)):
        slot_dim = slot_dim_of(slots, mappings, position, factor)
        if slot_dim is not None:
            yield slot_dim


def axes_of(sharding: TensorSharding | None, dimension: int) -> tuple[AxisRef, ...]:
    """Return the axes of a dimension; none without a sharding."""
    return () if sharding is None else sharding.of_dimension(dimension).axes


def overlapping(axis: AxisRef, axes: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the axes that share something with an axis."""
    return tuple(other for other in axes if other.overlaps(axis))


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
    for dimension, factors in enumerate(explanation.rule.mappings[position]):
        if factor in factors:
            return dimension
    raise ValueError(f"tensor {position} has no factor {factor}")


@frozen
class SlotRefusal:
    """A refusal of an axis, or of a part of it, at a dimension of a slot, with its reason.

    Args:
        reason: The reason.
        axis: The axis that is missing.
        slot_dim: The dimension where the axis stopped; not the one in question where that is further away.
        distance: The number of ops between the two.
        step: The step at which it stopped; None where the tensor itself is the reason.
        visit: The number of the visit that decided; -1 for none, where the refusal is as of the end.
        place: The user priority, the level and the strategy of that visit, or of the last one.
        source: The losing candidate: a dimension that has the axis.
        factor: The factor along which the axis would have come; -1 for none.
        obstacle: The dimension that stood in the way, where there is one.
        by: The axes in the way.
        earlier: The reasons at earlier levels, each with its level.
        detail: More about it.
        rivals: Of an axis that was lost, the dimensions that would have taken it in turn, were the obstacle not there.
    """

    reason: Reason
    axis: AxisRef
    slot_dim: SlotDim
    distance: int = 0
    step: int | None = None
    visit: int = -1
    place: SchedulePosition | None = None
    source: SlotDim | None = None
    factor: int = -1
    obstacle: SlotDim | None = None
    by: tuple[AxisRef, ...] = ()
    earlier: tuple[tuple[int, Reason], ...] = ()
    detail: str = ""
    rivals: tuple[SlotDim, ...] = ()
