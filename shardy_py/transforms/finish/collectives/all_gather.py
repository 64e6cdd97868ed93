"""Finding the axes of an all-gather.

Mirrors reshard_to_collectives.cc::tryAllGather.
"""

from __future__ import annotations

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge
from shardy_py.transforms.finish.collectives.state import ReshardState


def find_gathering_axes(state: ReshardState) -> tuple[tuple[AxisRef, ...], ...] | None:
    """Gather what the target does not need, and return it by dimension; None where there is nothing.

    A dimension is gathered when its last misplaced axis is not in the target, and then completely: an axis before it
    that the target needs elsewhere could not have been moved.
    """
    gathered = tuple(_gather(state, dim) for dim in state.dims)
    return gathered if any(gathered) else None


def _gather(state: ReshardState, dim: int) -> tuple[AxisRef, ...]:
    in_axes = state.in_axes[dim]
    if not in_axes or in_axes[-1] in state.out_positions:
        return ()
    state.in_set.discard(in_axes[-1])
    state.pop_current(dim, in_axes)
    gathered: list[AxisRef] = []
    for axis in in_axes:
        add_axis_or_merge(gathered, axis, state.mesh)
    in_axes.clear()
    return tuple(gathered)
