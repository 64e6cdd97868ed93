"""User priorities: the rounds in which dimension shardings take part."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Block, Program, Value
from shardy_py.ir.graph.shardings import distinct
from shardy_py.ir.graph.walk import all_ops, nearest_location, region_arguments
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.sharding_table import NO_SHARDING, ShardingTable
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import CLOSED, DimensionSharding, TensorSharding
from shardy_py.values import frozen


@frozen
class PriorityRound:
    """One user priority above 0, with its dimension shardings as updates of the shardings reached so far."""

    priority: int
    updates: tuple[tuple[int, Callable[[TensorSharding], TensorSharding]], ...]


def start_priorities(problem: Problem, current: list[int]) -> list[PriorityRound]:
    """Prepare the slots for priority 0 and return the later rounds, most urgent first.

    Mirrors user_priority_propagation.cc::getShardingReferencesPerPriorityAndInitialize.

    A dimension of a later round starts empty and closed, and its axes count as replicated, so that nothing else
    takes them before.

    Args:
        problem: The problem.
        current: Slot to sharding id; changed in place.
    """
    table = problem.table
    # Slots have few distinct shardings, in the order in which they are met first.
    entries = {number: _enter(table, number) for number in dict.fromkeys(current) if number != NO_SHARDING}
    first = {number: entered for number, (entered, _) in entries.items() if entered != number}
    rounds = {number: later for number, (_, later) in entries.items() if later}
    pending: dict[int, list[tuple[int, Callable[[TensorSharding], TensorSharding]]]] = {}
    if rounds:
        for slot, number in enumerate(current):
            for priority, update in rounds.get(number, ()):
                pending.setdefault(priority, []).append((slot, update))
    if first:
        current[:] = [first.get(number, number) for number in current]
    return [PriorityRound(priority, tuple(pending[priority])) for priority in sorted(pending)]


def _enter(
    table: ShardingTable, sharding_id: int
) -> tuple[int, list[tuple[int, Callable[[TensorSharding], TensorSharding]]]]:
    """Return the id of a sharding in the first round, and its later updates by priority."""
    original = table.values[sharding_id]
    assert original is not None, "a slot without a sharding has nothing to enter"
    priorities = sorted({dim.priority_or_default for dim in original.dim_shardings} - {0})
    later = [(priority, _reveal(original, priority)) for priority in priorities]
    first = _initial(original, table.mesh_of(original))
    return table.intern(first), later


def _initial(original: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Return the sharding with which a tensor enters the first round.

    Mirrors user_priority_propagation.cc::getInitializedSharding.
    """
    hidden = [axis for dim in original.dim_shardings if dim.priority_or_default for axis in dim.axes]
    if not hidden and not any(dim.priority is not None for dim in original.dim_shardings):
        if len(original.replicated_axes) < 2:
            return original
        return evolve(original, replicated_axes=tuple(sorted(original.replicated_axes, key=mesh.sort_key)))
    dims = tuple(CLOSED if dim.priority_or_default else evolve(dim, priority=None) for dim in original.dim_shardings)
    replicated = sorted([*original.replicated_axes, *hidden], key=mesh.sort_key)
    return evolve(original, dim_shardings=dims, replicated_axes=tuple(replicated))


def _reveal(original: TensorSharding, priority: int) -> Callable[[TensorSharding], TensorSharding]:
    """Return the function that brings the dimensions of one priority into the current sharding.

    Mirrors user_priority_propagation.cc::getUpdatedShardingForPriority.
    """
    shown = {axis for dim in original.dim_shardings if dim.priority_or_default == priority for axis in dim.axes}

    def choose(now: DimensionSharding, then: DimensionSharding) -> DimensionSharding:
        return evolve(then, priority=None) if then.priority_or_default == priority else now

    def update(sharding: TensorSharding) -> TensorSharding:
        dims = tuple(map(choose, sharding.dim_shardings, original.dim_shardings))
        replicated = tuple(axis for axis in sharding.replicated_axes if axis not in shown)
        return evolve(sharding, dim_shardings=dims, replicated_axes=replicated)

    return update


def warn_of_ignored_priorities(program: Program, strategy: str) -> tuple[Diagnostic, ...]:
    """Return a warning at the first sharding with a user priority above 0; none where there is no such sharding.

    Args:
        program: The program, before any pass; shardings are in its table.
        strategy: The name of the strategy, one without user priorities.
    """
    table = program.shardings
    later = {sharding: names for sharding in distinct(table.values()) if (names := _later_priorities(sharding))}
    if not later:
        return ()
    op, value = next(
        (op, value)
        for op in all_ops(program)
        for value in (*region_arguments(op), *op.results, *op.function_results)
        if table.get(value.id) in later
    )
    sharding = table[value.id]
    dims = ", ".join(map(str, sharding.dim_shardings))
    message = f"{_role(value)}: {later[sharding]} in [{dims}] has no effect with the strategy {strategy}"
    hint = 'only strategy="user-priority" (--strategy user-priority), the default, follows user priorities'
    return (Diagnostic("ignored-user-priority", message, nearest_location(op), op.name, hint, severity="warning"),)


def _later_priorities(sharding: TensorSharding) -> str:
    """Return the first priority above 0 of a sharding in words, or ""."""
    return next((f"the user priority p{dim.priority}" for dim in sharding.dim_shardings if dim.priority), "")


def _role(value: Value) -> str:
    return f"argument {value.index}" if isinstance(value.owner, Block) else f"result {value.index}"
