"""Deciding on a collective-permute, and finding the sharding it leads to.

Mirrors reshard_to_collectives.cc::tryCollectivePermute.
"""

from __future__ import annotations

from shardy_py.sharding.axes import AxisRef
from shardy_py.transforms.finish.collectives.search_state import ReshardState, are_divisible


def find_permutation(state: ReshardState) -> bool:
    """Replace axes by others of the same total size, and return whether a collective-permute is needed.

    It is needed, too, where only the order of devices differs. The decision is separate from the replacement, which
    may reorder axes although nothing is gained.
    """
    if _is_useful(state):
        _permute(state)
    elif state.current_mesh == state.target.mesh:
        return False
    state.current_mesh = state.target.mesh
    return True


def _is_useful(state: ReshardState) -> bool:
    return any(_is_useful_in(state, dim) for dim in state.dims) or _can_replace_gathered_by_sliced(state)


def _is_useful_in(state: ReshardState, dim: int) -> bool:
    """Return whether a dimension could be in place right away, or has axes in an order that all-to-alls cannot use.

    Mirrors reshard_to_collectives.cc::shouldCollectivePermute.
    """
    in_axes, out_axes = state.in_axes[dim], state.out_axes[dim]
    if in_axes and out_axes and _are_sizes_divisible(state, in_axes[0], out_axes[0]):
        return True
    last_position: tuple[int, int] | None = None
    seen: set[int] = set()
    for axis in in_axes:
        position = state.out_positions.get(axis)
        if position is None:
            # An axis to gather would have to go before those that move elsewhere.
            if last_position is not None and not out_axes:
                return True
        else:
            follows = last_position is not None and position == (last_position[0], last_position[1] + 1)
            if (position[0] == dim or position[0] in seen) and not follows:
                return True
            seen.add(position[0])
        last_position = position
    return False


def _can_replace_gathered_by_sliced(state: ReshardState) -> bool:
    """Return whether an axis to be gathered can give its place to one that is still to be sliced."""
    sliced = [axis for axes in state.out_axes for axis in axes if axis not in state.in_set]
    gathered = [axis for axes in state.in_axes for axis in axes if axis not in state.out_positions]
    return bool(sliced and gathered) and _are_sizes_divisible(state, sliced[-1], gathered[-1])


def _are_sizes_divisible(state: ReshardState, first: AxisRef, second: AxisRef) -> bool:
    return are_divisible(first.size(state.mesh), second.size(state.mesh))


def _permute(state: ReshardState) -> None:
    """Shard every dimension as much as before: by axes in place, then axes of the target, then those to be gathered.

    Axes to be gathered go to the front, preferably to where they were, so that all-to-alls can move the others.

    Mirrors reshard_to_collectives.cc::performCollectivePermute.
    """
    state.in_set.clear()
    leftover = [_put_in_place(state, dim) for dim in state.dims]
    out_axes = [axis for axes in state.out_axes for axis in axes]
    state.distribute(lambda dim: out_axes, to_front=False)
    state.distribute(lambda dim: leftover[dim], to_front=True)
    in_axes = [axis for axes in leftover for axis in axes]
    state.distribute(lambda dim: in_axes, to_front=True)
    state.locate_out_axes()
    for dim, axes in enumerate(state.in_axes):
        for axis in axes:
            state.add_current(dim, axis)


def _put_in_place(state: ReshardState, dim: int) -> list[AxisRef]:
    """Fill a dimension with the axes the target has there; return its axes that are to be gathered.

    Those among them that were not replaced come first in the result.
    """
    in_axes, out_axes = state.in_axes[dim], state.out_axes[dim]
    total = state.size(in_axes)
    state.pop_current(dim, in_axes)
    state.capacities[dim] = total
    while state.capacities[dim] > 1 and out_axes:
        within, remainder, state.capacities[dim] = state.fit(out_axes[0], state.capacities[dim])
        if within is None:
            break
        out_axes[:1] = [] if remainder is None else [remainder]
        state.add_current(dim, within)
    remaining = [axis for axis in in_axes if axis not in state.out_positions]
    in_axes.clear()
    return _move_replaced_to_back(state, remaining, total // state.capacities[dim])


def _move_replaced_to_back(state: ReshardState, axes: list[AxisRef], replaced_size: int) -> list[AxisRef]:
    replaced: list[AxisRef] = []
    while replaced_size > 1 and axes:
        within, remainder, replaced_size = state.fit(axes[0], replaced_size)
        if within is None:
            break
        axes[:1] = [] if remainder is None else [remainder]
        replaced.append(within)
    return axes + replaced
