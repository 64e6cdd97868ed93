"""User priorities: which dimension shardings take part in which round."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from shardy_py.propagation.problem import Problem
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import CLOSED, DimensionSharding, TensorSharding


@frozen
class PriorityRound:
    """One user priority above 0 and what comes into play with it, as functions of the sharding reached so far."""

    priority: int
    updates: tuple[tuple[int, Callable[[TensorSharding], TensorSharding]], ...]


def start_priorities(problem: Problem, current: list[int]) -> list[PriorityRound]:
    """Prepare the slots for priority 0 and return the later rounds, most urgent first.

    A dimension of a later round starts empty and closed, and its axes count as replicated, so that nothing else
    takes them before.

    Args:
        problem: The problem.
        current: Slot to sharding id; changed in place.
    """
    table = problem.table
    pending: dict[int, list[tuple[int, Callable[[TensorSharding], TensorSharding]]]] = {}
    for slot in range(len(current) - 1):
        original = table.values[current[slot]]
        if original is None:
            continue
        current[slot] = table.intern(_initial(original, table.mesh_of(original)))
        for priority in sorted({dim.priority_or_default for dim in original.dim_shardings}):
            if priority > 0:
                pending.setdefault(priority, []).append((slot, _reveal(original, priority)))
    return [PriorityRound(priority, tuple(pending[priority])) for priority in sorted(pending)]


def _initial(original: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Return the sharding with which a tensor enters the first round."""
    hidden = [axis for dim in original.dim_shardings if dim.priority_or_default for axis in dim.axes]
    if not hidden and not any(dim.priority is not None for dim in original.dim_shardings):
        return evolve(original, replicated_axes=tuple(sorted(original.replicated_axes, key=mesh.sort_key)))
    dims = tuple(CLOSED if dim.priority_or_default else evolve(dim, priority=None) for dim in original.dim_shardings)
    replicated = sorted([*original.replicated_axes, *hidden], key=mesh.sort_key)
    return evolve(original, dim_shardings=dims, replicated_axes=tuple(replicated))


def _reveal(original: TensorSharding, priority: int) -> Callable[[TensorSharding], TensorSharding]:
    """Return the function that brings the dimensions of one priority into the current sharding."""
    shown = {axis for dim in original.dim_shardings if dim.priority_or_default == priority for axis in dim.axes}

    def choose(now: DimensionSharding, then: DimensionSharding) -> DimensionSharding:
        return evolve(then, priority=None) if then.priority_or_default == priority else now

    def update(sharding: TensorSharding) -> TensorSharding:
        dims = tuple(map(choose, sharding.dim_shardings, original.dim_shardings))
        replicated = tuple(axis for axis in sharding.replicated_axes if axis not in shown)
        return evolve(sharding, dim_shardings=dims, replicated_axes=replicated)

    return update
