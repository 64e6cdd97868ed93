"""Which steps have to be visited again when a sharding changes, in the reference's order."""

from __future__ import annotations

from shardy_py.ir.data_flow import DATA_FLOW_EDGE, edge_user
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.interfaces import IsTerminator, OpOperand, OpSemantics
from shardy_py.ir.symbols import calls_by_callee
from shardy_py.propagation.id_map import ABSENT, IdMap
from shardy_py.propagation.slots import Slots, entry_block

CALL, FUNCTION, RETURN = "func.call", "func.func", "func.return"


class Notifications:
    """Computes, per value, the steps that a change of its sharding puts back on the worklist.

    These are: for an edge the users of the targets it stands for, the step that makes the value, then its users,
    newest use first. A use by a terminator or by a data flow op stands for the edge that begins there, a use by a call
    for the uses of the callee's argument, a returned value for the uses of the callers' results.
    """

    def __init__(self, program: Program, semantics: OpSemantics, slots: Slots, step_of: IdMap) -> None:
        self._semantics = semantics
        self._slots = slots
        self._step_of = step_of
        self._functions = program.functions
        self._callers = calls_by_callee(program)

    def of(self, value: Value) -> tuple[int, ...]:
        """Return the steps to put back when the sharding of ``value`` changes, in order."""
        return self._of_plain(value) or self._of_any(value)

    def of_slot(self, value: Value) -> tuple[tuple[int, ...], bool]:
        """Return the steps to put back when the slot of ``value`` changes, and whether they are those of the slot.

        The steps of a slot are those with the slot among theirs. Edges that begin at the value aside, they are what is
        put back for the result of an op.
        """
        steps = self._of_plain(value)
        return (self._of_any(value), False) if steps is None else (steps, True)

    def _of_plain(self, value: Value) -> tuple[int, ...] | None:
        """Return the steps of the result of an op that has one, like all its users, which is the case of nearly all."""
        owner, step_of = value.owner, self._step_of.numbers
        if not isinstance(owner, Op) or owner.name == DATA_FLOW_EDGE:
            return None
        uses = value.uses
        if len(uses) == 1:
            own, other = step_of[owner.id], step_of[uses[0][0].id]
            return (own, other) if ABSENT not in (own, other) and own != other else None
        steps = [step_of[owner.id]]
        steps += [step_of[user.id] for user, _ in reversed(uses)]
        return None if ABSENT in steps else tuple(dict.fromkeys(steps))

    def _of_any(self, value: Value) -> tuple[int, ...]:
        steps: dict[int, None] = {}
        op = value.defining_op
        if op is not None and op.name == DATA_FLOW_EDGE and op.id in self._slots.edges:
            edge = self._slots.edges[op.id]
            for target in edge.data_flow.get_non_edge_owner_targets(edge.owner_op, edge.owner):
                self._add_users(target, steps, set())
        self._add(value.owning_op, steps)
        self._add_users(value, steps, set())
        return tuple(steps)

    def _add(self, op: Op, steps: dict[int, None]) -> None:
        step = self._step_of.numbers[op.id]
        if step != ABSENT:
            steps.setdefault(step)

    def _add_users(self, value: Value, steps: dict[int, None], seen: set[int]) -> None:
        if value.id in seen:
            return
        seen.add(value.id)
        for user, number in reversed(value.uses):
            step = self._step_of.numbers[user.id]
            if step != ABSENT:
                steps.setdefault(step)
            elif not self._add_edge(user, number, steps):
                self._add_beyond(user, number, steps, seen)

    def _add_edge(self, user: Op, number: int, steps: dict[int, None]) -> bool:
        """Add the edge that begins at a use; return whether there is one."""
        is_terminator = IsTerminator in self._semantics.get_traits(user)
        flow_op = user.parent_op if is_terminator else user
        data_flow = self._slots.data_flow.get(flow_op.id) if flow_op else None
        if flow_op is None or data_flow is None:
            return False
        owner = data_flow.get_edge_owner_from_source(flow_op, OpOperand(user, number))
        edge = edge_user(owner) if owner else None
        if edge is None:
            return False
        self._add(edge, steps)
        return True

    def _add_beyond(self, user: Op, number: int, steps: dict[int, None], seen: set[int]) -> None:
        """Follow a use into a callee, or out of it to the callers."""
        if user.name == CALL:
            callee = self._functions.get(user.attributes["callee"].name)
            block = entry_block(callee) if callee else None
            if block:
                self._add_users(block.arguments[number], steps, seen)
        elif user.name == RETURN:
            function = user.parent_op
            if function is not None and function.name == FUNCTION:
                for call in self._callers.get(function.attributes["sym_name"], ()):
                    self._add_users(call.results[number], steps, seen)
        elif user.parent_op is not None and user is user.parent.last:  # type: ignore[union-attr]
            self._add(user.parent_op, steps)
