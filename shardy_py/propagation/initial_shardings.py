"""Shardings with which the slots of a problem start."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.slots import NO_SLOT, Slots
from shardy_py.sharding.tensor import TensorSharding


def initial_shardings(program: Program, problem: Problem) -> list[int]:
    """Return the sharding id of every slot, and a missing one for values without a slot.

    Args:
        program: The program, with a table of shardings.
        problem: The problem, with its slots and siblings.

    Raises:
        UnsupportedError: a sharding has another rank than its value.
    """
    intern, slot_of, values = problem.table.intern, problem.slot_of.get, problem.slot_values
    placed = [(slot_of(value, NO_SLOT), value, sharding) for value, sharding in program.shardings.items()]
    placed = [(slot, value, sharding) for slot, value, sharding in placed if slot >= 0 and values[slot].id == value]
    initial = [NO_SHARDING] * (len(values) + 1)
    for slot, _, sharding in sorted(placed, key=itemgetter(0)):
        initial[slot] = intern(sharding)
        _check_rank(problem, values[slot], sharding)
    _open_siblings(problem, initial)
    return initial


def _open_siblings(problem: Problem, initial: list[int]) -> None:
    """Open the results of which only others have a sharding: one attribute holds those of all results.

    Mirrors utils.cc::getOpenShardingsWithShardingAtIndex.
    """
    opened: set[int] = set()
    for slot, siblings in problem.siblings.items():
        # The first result that has a sharding opens all others of its op.
        if initial[slot] == NO_SHARDING or siblings[0][0] in opened:
            continue
        opened.add(siblings[0][0])
        for other, rank in siblings:
            if initial[other] == NO_SHARDING:
                initial[other] = problem.table.fully_open_like(initial[slot], rank)


def _check_rank(problem: Problem, value: Value, sharding: TensorSharding) -> None:
    mesh = problem.table.mesh_of(sharding)
    rank = _rank_of(value)
    if not mesh.is_maximal and sharding.rank != rank:
        op = value.owning_op
        raise UnsupportedError(
            Diagnostic(
                "rank-mismatch",
                f"sharding {sharding} has rank {sharding.rank}, the value has type {value.type}",
                op.location,
                op.name,
                "give one dimension sharding per dimension",
            )
        )


def sibling_results(slots: Slots) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return, for each result of an op with several, the slots and ranks of all of them, by slot in order.

    The results of an op share one tuple: their number may be large.
    """
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    for op in slots.with_several_results:
        siblings = tuple(_siblings_of(slots, op))
        found.update((slot, siblings) for slot, _ in siblings)
    return dict(sorted(found.items()))


def _siblings_of(slots: Slots, op: Op) -> Iterator[tuple[int, int]]:
    for value in op.results:
        slot = slots.get(value)
        if slot != NO_SLOT and slots.values[slot] is value:
            yield slot, _rank_of(value)


def _rank_of(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0
