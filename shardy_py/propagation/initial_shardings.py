"""Shardings with which the slots of a problem start; the members of a sharding group start with a common one."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import CONSTRAINT, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import set_sharding
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.slots import NO_SLOT, Slots, assign_slots
from shardy_py.sharding.tensor import OPEN, TensorSharding


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
    """Give open shardings to results without one where another result of their op has a sharding.

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
    siblings_of_slot: dict[int, tuple[tuple[int, int], ...]] = {}
    for op in slots.with_several_results:
        siblings = tuple(_siblings_of(slots, op))
        siblings_of_slot.update((slot, siblings) for slot, _ in siblings)
    return dict(sorted(siblings_of_slot.items()))


def _siblings_of(slots: Slots, op: Op) -> Iterator[tuple[int, int]]:
    for value in op.results:
        slot = slots.get(value)
        if slot != NO_SLOT and slots.values[slot] is value:
            yield slot, _rank_of(value)


def _rank_of(value: Value) -> int:
    return value.type.rank if isinstance(value.type, TensorType) else 0


def sync_sharding_groups(program: Program, semantics: OpSemantics, warnings: list[Diagnostic]) -> None:
    """Give all members of each sharding group the sharding that one of them has.

    Mirrors sharding_group_map.cc::syncGroupMemberShardings.

    Where members disagree, each gets an open sharding constraint, and the constraints form the group from then on.

    Args:
        program: The program; its table, and in a conflict its ops, are changed.
        semantics: The traits, rules and data flow of the ops.
        warnings: Receives one warning per conflict.
    """
    members = members_by_group(program)
    if not members:
        return
    slots = assign_slots(program, semantics)
    for group_id in sorted(members):
        _sync_group(program, slots, group_id, members[group_id], warnings)


def members_by_group(program: Program) -> dict[int, list[Value]]:
    """Return the members of each sharding group by its id, in program order."""
    members: dict[int, list[Value]] = {}
    for op in ops_named(program, SHARDING_GROUP):
        members.setdefault(int(op.attributes["group_id"]), []).append(op.operands[0])
    return members


def _sync_group(program: Program, slots: Slots, group_id: int, values: list[Value], warnings: list[Diagnostic]) -> None:
    common, conflict = _common_sharding(program, slots, values)
    if common is None:
        return
    if not conflict:
        for value in values:
            _set(program, slots, value, common)
        return
    warnings.append(_conflict_warning(group_id, values[0]))
    opened = evolve(common.map_dims(lambda dim: OPEN), replicated_axes=(), unreduced_axes=())
    for value in values:
        _constrain(program, value, opened)


def _get(program: Program, slots: Slots, value: Value) -> TensorSharding | None:
    slot = slots.get(value)
    return None if slot == NO_SLOT else program.shardings.get(slots.values[slot].id)


def _set(program: Program, slots: Slots, value: Value, sharding: TensorSharding) -> None:
    slot = slots.get(value)
    if slot != NO_SLOT:
        set_sharding(program, slots.values[slot], sharding)


def _common_sharding(program: Program, slots: Slots, values: list[Value]) -> tuple[TensorSharding | None, bool]:
    """Return the sharding the members share (the first one found in a conflict), and whether they disagree.

    Mirrors sharding_group_map.cc::findCommonSharding.
    """
    if len(values) == 1:
        return _get(program, slots, values[0]), False
    common: TensorSharding | None = None
    for value in values:
        candidate = _get(program, slots, value)
        if candidate is None or all(not dim.axes and not dim.is_closed for dim in candidate.dim_shardings):
            continue
        if common is None:
            common = candidate
        elif candidate != common:
            return common, True
    return common, False


def _constrain(program: Program, value: Value, sharding: TensorSharding) -> None:
    """Insert a sharding constraint right after a value and let all its users use that."""
    constraint = Op(program, CONSTRAINT, [value], [value.type], {"sharding": sharding})
    value.insert_after(constraint)
    value.replace_all_uses_with(constraint.result, except_op=constraint)
    program.shardings[constraint.result.id] = sharding


def _conflict_warning(group_id: int, first: Value) -> Diagnostic:
    op = first.owning_op
    return Diagnostic(
        "sharding-group-conflict",
        f"The initial operand shardings on the sharding groups of groupID: {group_id} do not match. Inserting an open "
        "sharding constraint to all constrained values.",
        op.location,
        op.name,
        "give all members of the group the same sharding, or only one of them",
    )
