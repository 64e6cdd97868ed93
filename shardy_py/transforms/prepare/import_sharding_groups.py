"""Bring sharding groups into normal form: one group per value, numbered from 0, without duplicates.

Mirrors sharding_group_import.cc::ShardingGroupImportPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class ShardingGroupImportPass(NoFields):
    """Merge groups that share a value, transitively, and number them by their smallest id."""

    name: ClassVar[str] = "sdy-sharding-group-import"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite the group ids, and erase ops that put a value into its group again.

        Raises:
            VerificationError: members of a group differ in shape or in the manual computation around them.
        """
        ops = ops_named(program, SHARDING_GROUP)
        problems = check_groups(ops)
        if problems:
            raise VerificationError(*problems)
        new_ids = _canonical_ids(ops)
        seen: set[tuple[int, int]] = set()
        for op in ops:
            group_id = new_ids[_group_id(op)]
            member = (group_id, op.operands[0].id)
            if member in seen:
                op.erase()
                continue
            seen.add(member)
            if _group_id(op) != group_id:
                op.attributes["group_id"] = group_id


def check_groups(ops: Sequence[Op]) -> list[Diagnostic]:
    """Return the problems of the sharding groups: at most one per op."""
    problems: list[Diagnostic] = []
    first: dict[int, tuple[Op | None, object]] = {}
    for op in ops:
        group_id = _group_id(op)
        around, shape = _manual_computation(op), _shape(op)
        expected_around, expected_shape = first.setdefault(group_id, (around, shape))
        if around is not expected_around:
            message = f"ShardingGroupOps values cannot cross ManualComputationOp boundaries for groupId: {group_id}"
            hint = "give the values inside and outside the manual computation different groups"
            problems.append(Diagnostic("group-crosses-manual-computation", message, op.location, op.name, hint))
        elif shape != expected_shape:
            message = f"ShardingGroupOps values must have the same shape for groupId: {group_id}"
            hint = f"this one is {op.operands[0].type}, the first member's shape is {expected_shape}"
            problems.append(Diagnostic("group-shapes-differ", message, op.location, op.name, hint))
    return problems


def _canonical_ids(ops: Sequence[Op]) -> dict[int, int]:
    """Return old id to new id; groups with a common value are one.

    The new ids follow the order in which the leaders of the merged groups appear first. Where two groups merge, the
    first group of the value they share leads.
    """
    groups_of: dict[int, list[int]] = {}
    for op in ops:
        groups_of.setdefault(op.operands[0].id, []).append(_group_id(op))
    members: dict[int, list[int]] = {}
    leader: dict[int, int] = {}
    for first, *others in groups_of.values():
        for group_id in (first, *others):
            if group_id not in leader:
                leader[group_id] = group_id
                members[group_id] = [group_id]
            winner, loser = leader[first], leader[group_id]
            if winner == loser:
                continue
            moved = members.pop(loser)
            members[winner] += moved
            for member in moved:
                leader[member] = winner
    positions = {group_id: index for index, group_id in enumerate(id_ for id_ in leader if leader[id_] == id_)}
    return {old: positions[leading] for old, leading in leader.items()}


def _group_id(op: Op) -> int:
    return int(op.attributes["group_id"])


def _shape(op: Op) -> object:
    type_ = op.operands[0].type
    return type_.shape if isinstance(type_, TensorType) else None


def _manual_computation(op: Op) -> Op | None:
    parent = op.parent_op
    while parent is not None and parent.name != MANUAL_COMPUTATION:
        parent = parent.parent_op
    return parent
