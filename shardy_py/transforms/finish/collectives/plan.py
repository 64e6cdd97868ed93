"""Plan of a reshard: the greedy search for collectives, cheap ones first, until the current sharding is the target.

Mirrors reshard_to_collectives.cc::CollectiveInserter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from attrs import evolve

from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE
from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import AllToAllParamList, ListOfAxisRefLists
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.sharding.verify import verify_tensor_sharding
from shardy_py.transforms.finish.collectives.collective_permute import find_permutation
from shardy_py.transforms.finish.collectives.gathers_and_slices import (
    find_all_to_alls,
    find_gathering_axes,
    find_slicing_axes,
)
from shardy_py.transforms.finish.collectives.search_state import AxesPerDim, ReshardState
from shardy_py.values import frozen


@frozen
class Collective:
    """A collective to insert.

    Args:
        name: The name of the op.
        out_sharding: The sharding of its result.
        attribute: The name of the attribute that says what it does, or "".
        value: The value of that attribute.
    """

    name: str
    out_sharding: TensorSharding
    attribute: str = ""
    value: ListOfAxisRefLists | AllToAllParamList | None = None


def is_valid(source: TensorSharding, plan: Iterable[Collective], mesh: Mesh) -> bool:
    """Return whether every collective of a plan, from a source sharding on, is one that MLIR's verifier accepts."""
    operand = source
    for collective in plan:
        result = collective.out_sharding
        if verify_tensor_sharding(result, mesh) or _has_problem(collective, mesh):
            return False
        if not _leads_to(operand, collective, mesh):
            return False
        operand = result
    return True


def _has_problem(collective: Collective, mesh: Mesh) -> bool:
    """Return whether the axes of a collective contradict each other."""
    value = collective.value
    if not isinstance(value, ListOfAxisRefLists):
        return False
    dims = tuple(DimensionSharding(axes) for axes in value.axes_per_dim)
    return bool(verify_tensor_sharding(evolve(collective.out_sharding, dim_shardings=dims, unreduced_axes=()), mesh))


def _leads_to(operand: TensorSharding, collective: Collective, mesh: Mesh) -> bool:
    axes: AxesPerDim = [list(dim.axes) for dim in operand.dim_shardings]
    wanted: AxesPerDim = [list(dim.axes) for dim in collective.out_sharding.dim_shardings]
    value = collective.value
    if isinstance(value, AllToAllParamList):
        return (
            all(
                _remove(axes[param.src_dim], param.axes, mesh) and _append(axes[param.tgt_dim], param.axes, mesh)
                for param in value.params
            )
            and axes == wanted
        )
    if value is None:
        return [axes_size(dim, mesh) for dim in axes] == [axes_size(dim, mesh) for dim in wanted]
    apply = _append if collective.name == ALL_SLICE else _remove
    return all(apply(*pair, mesh) for pair in zip(axes, value.axes_per_dim, strict=True)) and axes == wanted


def _append(axes: list[AxisRef], added: Sequence[AxisRef], mesh: Mesh) -> bool:
    for axis in added:
        add_axis_or_merge(axes, axis, mesh)
    return True


def _remove(axes: list[AxisRef], removed: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Take axes from the end of a list; return whether they are there."""
    for axis in reversed(removed):
        if not axes or not axis.suffix_of(axes[-1], mesh):
            return False
        prefix = axes[-1].prefix_without_overlap(axis)
        axes[-1:] = [] if prefix is None else [prefix]
    return True


_ROUNDS = 2
"""One is enough where of any two axis sizes one divides the other."""


@lru_cache(maxsize=4096)
def plan_collectives(
    source: TensorSharding, target: TensorSharding, shape: tuple[int | None, ...], mesh: Mesh
) -> tuple[Collective, ...] | None:
    """Return the collectives that turn a source sharding into a target, in order; None where none do.

    A program has few distinct reshards, so the plans are remembered.

    Args:
        source: The sharding of the tensor now.
        target: The sharding to reach, of the same rank.
        shape: The sizes of the tensor; None for a dynamic one.
        mesh: The mesh of the source; that of the target has the same axes, perhaps another order of devices.
    """
    plan = tuple(_search(ReshardState.between(source, target, shape, mesh)))
    if is_valid(source, plan, mesh):
        return plan
    if source.unreduced_axes != target.unreduced_axes:
        return None
    # The search loses its way where of two axis sizes neither divides the other.
    return tuple(_gather_and_slice(ReshardState.between(source, target, shape, mesh)))


def _search(state: ReshardState) -> Iterator[Collective]:
    for _ in range(_ROUNDS):
        if state.is_done:
            break
        for step in _STEPS:
            yield from step(state)


def _gather_and_slice(state: ReshardState) -> Iterator[Collective]:
    """Take the long way, which always works: undo all that is misplaced, then slice as the target is."""
    state.out_positions.clear()
    yield from _all_gather(state)
    state.in_set.clear()
    yield from _collective_permute(state)
    yield from _all_slice(state)


def _all_slice(state: ReshardState) -> Iterator[Collective]:
    """Slicing needs no communication and makes everything after it smaller."""
    axes = find_slicing_axes(state)
    if axes is not None:
        yield Collective(ALL_SLICE, state.current_sharding, "slicing_axes", ListOfAxisRefLists(axes))


def _collective_permute(state: ReshardState) -> Iterator[Collective]:
    """A permutation keeps the size of the tensor, and each device talks to one other only."""
    if find_permutation(state):
        yield Collective(COLLECTIVE_PERMUTE, state.current_sharding)


def _all_to_alls(state: ReshardState, *, in_order: bool) -> Iterator[Collective]:
    for param in find_all_to_alls(state, in_order=in_order):
        yield Collective(ALL_TO_ALL, state.current_sharding, "params", AllToAllParamList((param,)))


def _all_to_alls_in_order(state: ReshardState) -> Iterator[Collective]:
    """Moves right into place come first: of several into one dimension that gives the order that needs no permute."""
    return _all_to_alls(state, in_order=True)


def _all_to_alls_in_any_order(state: ReshardState) -> Iterator[Collective]:
    return _all_to_alls(state, in_order=False)


def _all_gather(state: ReshardState) -> Iterator[Collective]:
    """Gathering makes the tensor larger, so it comes last."""
    axes = find_gathering_axes(state)
    if axes is not None:
        yield Collective(ALL_GATHER, state.current_sharding, "gathering_axes", ListOfAxisRefLists(axes))


_STEPS: tuple[Callable[[ReshardState], Iterator[Collective]], ...] = (
    _all_slice,
    _collective_permute,
    _all_to_alls_in_order,
    _all_to_alls_in_any_order,
    _all_gather,
)
