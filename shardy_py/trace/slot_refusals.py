"""Refusals in terms of a trace: slots, dimensions, steps and visits."""

from __future__ import annotations

from shardy_py.propagation.trace import SchedulePosition
from shardy_py.sharding.axes import AxisRef
from shardy_py.trace.reasons import Reason
from shardy_py.trace.slot_dims import SlotDim
from shardy_py.values import frozen


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
