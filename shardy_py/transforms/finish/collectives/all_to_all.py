"""Finding all-to-alls: axes that go from the end of one dimension to the end of another.

Mirrors reshard_to_collectives.cc::tryAllToAlls.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge
from shardy_py.sharding.op_attributes import AllToAllParam
from shardy_py.transforms.finish.collectives.state import ReshardState


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
