"""The greedy search: cheap collectives first, until the current sharding is the target.

Mirrors reshard_to_collectives.cc::CollectiveInserter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import AllToAllParamList, ListOfAxisRefLists
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.collectives.all_gather import find_gathering_axes
from shardy_py.transforms.finish.collectives.all_slice import find_slicing_axes
from shardy_py.transforms.finish.collectives.all_to_all import find_all_to_alls
from shardy_py.transforms.finish.collectives.collective import Collective
from shardy_py.transforms.finish.collectives.collective_permute import find_permutation
from shardy_py.transforms.finish.collectives.plan_check import is_valid
from shardy_py.transforms.finish.collectives.state import ReshardState

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
