"""The axes of all-gathers, all-slices and all-to-alls that lead a search for collectives to its target.

Mirrors reshard_to_collectives.cc::tryAllGather, reshard_to_collectives.cc::tryAllSlice and
reshard_to_collectives.cc::tryAllToAlls.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge
from shardy_py.sharding.op_attributes import AllToAllParam
from shardy_py.transforms.finish.collectives.search_state import AxesPerDim, ReshardState


def find_gathering_axes(state: ReshardState) -> tuple[tuple[AxisRef, ...], ...] | None:
    """Gather the axes that the target does not have, and return them by dimension; None where there are none.

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


_DYNAMIC = -(2**63)
"""The number that MLIR computes with for a dynamic size."""


def find_slicing_axes(state: ReshardState) -> tuple[tuple[AxisRef, ...], ...] | None:
    """Slice by axes of the target that are free, and return them by dimension; None where there are none.

    No dimension is split further than in the target, for that would have to be undone by an all-to-all.
    """
    slicing: AxesPerDim = [[] for _ in state.dims]

    def add(dim: int, axis: AxisRef) -> None:
        add_axis_or_merge(slicing[dim], axis, state.mesh)
        state.add_current(dim, axis)

    for dim in state.dims:
        in_size, out_size = state.size(state.in_axes[dim]), state.size(state.out_axes[dim])
        state.capacities[dim] = out_size // gcd(in_size, out_size)
    for dim in state.dims:
        for axis in _reserve_for_all_to_all(state, dim):
            state.in_axes[dim].append(axis)
            state.in_set.add(axis)
            add(dim, axis)
    available: list[AxisRef] = []
    for dim in state.dims:
        for axis in _slice_in_place(state, dim, available):
            add(dim, axis)
    state.distribute(lambda dim: available, to_front=False, on_added=add)
    state.locate_out_axes()
    return tuple(tuple(axes) for axes in slicing) if any(slicing) else None


def _slice_in_place(state: ReshardState, dim: int, available: list[AxisRef]) -> list[AxisRef]:
    """Return the free axes of the target to slice in their own dimension; those that do not fit go to ``available``."""
    in_axes, out_axes = state.in_axes[dim], state.out_axes[dim]
    sliced: list[AxisRef] = []
    index = 0
    while index < len(out_axes):
        axis = out_axes[index]
        if axis in state.in_set:
            index += 1
            continue
        within, remainder, state.capacities[dim] = state.fit(axis, state.capacities[dim])
        if within is None:
            available.append(axis)
            index += 1
            continue
        sliced.append(within)
        if index == 0 and not in_axes:
            del out_axes[0]
        else:
            state.in_set.add(within)
            in_axes.append(within)
            out_axes[index] = within
            index += 1
        if remainder is not None:
            out_axes.insert(index, remainder)
            available.append(remainder)
            index += 1
    return sliced


def _reserve_for_all_to_all(state: ReshardState, src_dim: int) -> list[AxisRef]:
    """Return axes to slice in a dimension, although the target has them in another, for one all-to-all of them all.

    That saves a collective-permute where the end of the source dimension is followed by free axes in the target
    dimension. The target dimension must have nothing misplaced, the source dimension nothing else to become, and
    be divisible by all the axes. The capacity is borrowed from the target dimension.

    Mirrors reshard_to_collectives.cc::getAxesToSliceForAllToAll.
    """
    src_in_axes = state.in_axes[src_dim]
    if not src_in_axes or state.out_axes[src_dim]:
        return []
    tgt_dim, _ = state.out_positions.get(src_in_axes[-1], (None, 0))
    if tgt_dim is None or state.in_axes[tgt_dim]:
        return []
    tgt_out_axes = state.out_axes[tgt_dim]
    start = tgt_out_axes.index(src_in_axes[-1]) + 1
    end = start
    while end < len(tgt_out_axes) and tgt_out_axes[end] not in state.in_set:
        end += 1
    if end == start:
        return []
    common = _common_suffix_length(src_in_axes, tgt_out_axes[:start])
    rest = src_in_axes[: len(src_in_axes) - common]
    if any(state.out_positions.get(axis, (None, 0))[0] == tgt_dim for axis in rest):
        return []
    added_size = state.size(tgt_out_axes[start:end])
    size = state.shape[src_dim]
    if (_DYNAMIC if size is None else size) % (state.size(state.current_axes[src_dim]) * added_size):
        return []
    state.capacities[tgt_dim] //= state.size(src_in_axes[len(src_in_axes) - common :]) * added_size
    return tgt_out_axes[start:end]


def _common_suffix_length(first: list[AxisRef], second: list[AxisRef]) -> int:
    length = 0
    while length < min(len(first), len(second)) and first[-1 - length] == second[-1 - length]:
        length += 1
    return length


def find_all_to_alls(state: ReshardState, *, in_order: bool) -> Iterator[AllToAllParam]:
    """Move axes to the dimensions where the target has them, and yield each move after it is made.

    Args:
        state: The state, which changes.
        in_order: Whether only moves that put the axes right into place are allowed.
    """
    for src_dim in state.dims:
        while (param := _move(state, src_dim, in_order=in_order)) is not None:
            yield param


def _move(state: ReshardState, src_dim: int, *, in_order: bool) -> AllToAllParam | None:
    """Move the longest suffix of a dimension whose axes all go to the same other one."""
    src_in_axes = state.in_axes[src_dim]
    start, tgt_dim = _find_suffix(state, src_dim)
    if tgt_dim is None:
        return None
    axes = src_in_axes[start:]
    if in_order and axes != state.out_axes[tgt_dim][: len(axes)]:
        return None
    state.pop_current(src_dim, axes)
    del src_in_axes[start:]
    moved: list[AxisRef] = []
    for axis in axes:
        add_axis_or_merge(moved, axis, state.mesh)
        _arrive(state, tgt_dim, axis)
    return AllToAllParam(tuple(moved), src_dim, tgt_dim)


def _find_suffix(state: ReshardState, src_dim: int) -> tuple[int, int | None]:
    """Return where the suffix starts, and the dimension it goes to."""
    in_axes = state.in_axes[src_dim]
    tgt_dim: int | None = None
    start = len(in_axes)
    while start > 0:
        dim, _ = state.out_positions.get(in_axes[start - 1], (src_dim, 0))
        if dim == src_dim or tgt_dim not in (None, dim):
            break
        tgt_dim = dim
        start -= 1
    return start, tgt_dim


def _arrive(state: ReshardState, dim: int, axis: AxisRef) -> None:
    """Append an axis to its target dimension, where it may or may not be in place."""
    state.add_current(dim, axis)
    state.in_set.discard(axis)
    if not state.in_axes[dim] and state.out_axes[dim][:1] == [axis]:
        del state.out_axes[dim][0]
    else:
        state.in_axes[dim].append(axis)
        state.in_set.add(axis)
