"""Sharding groups before propagation: members start with one common sharding."""

from __future__ import annotations

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_index import ops_named
from shardy_py.ir.graph.op_names import CONSTRAINT, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import set_sharding
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.propagation.slots import NO_SLOT, Slots, assign_slots
from shardy_py.sharding.tensor import OPEN, TensorSharding


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
