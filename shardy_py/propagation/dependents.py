"""Per-slot steps that see a change of its sharding, in the reference's order.

Mirrors basic_propagation.cc::notifyShardingModified.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from shardy_py.ir.graph.data_flow import edge_user
from shardy_py.ir.graph.op_names import CALL, DATA_FLOW_EDGE, FUNCTION, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.symbols import calls_by_callee
from shardy_py.ir.graph.walk import entry_block
from shardy_py.ir.interfaces.ops import IsTerminator, OpOperand, OpSemantics
from shardy_py.propagation.slots import ABSENT, IdMap, Slots


class Dependents:
    """Per-slot steps that see a change of its sharding.

    Most slots never change, so the steps of a slot are looked up at its first change. The program must still be as it
    was compiled.

    Attributes:
        not_requeued: Slot to the steps that see a change of it and are not put back on the worklist; most slots have
            none. `of` fills it.
    """

    __slots__ = ("_edges_at", "_found", "_put_back_of", "_shared", "_steps_of_slots", "_values", "not_requeued")

    def __init__(
        self,
        program: Program,
        semantics: OpSemantics,
        slots: Slots,
        step_of: IdMap,
        step_slots: Sequence[tuple[int, ...]],
        edge_steps: Iterable[int],
    ) -> None:
        """Prepare the look-up.

        Args:
            program: The program.
            semantics: The traits and the data flow of the ops.
            slots: The slots.
            step_of: Op id to step.
            step_slots: Step to its slots.
            edge_steps: The steps of data-flow edges.
        """
        self.not_requeued: dict[int, tuple[int, ...]] = {}
        self._values = slots.values
        self._put_back_of = _PutBack(program, semantics, slots, step_of).of
        self._found: list[tuple[int, ...] | None] = [None] * len(slots.values)
        self._edges_at: dict[int, list[int]] = {}
        for step in edge_steps:
            for slot in step_slots[step][:-1]:
                self._edges_at.setdefault(slot, []).append(step)
        # Of a data-flow op, any value may share its slot with others whose users are not looked at.
        own_steps = (step_of.get(op_id) for op_id in slots.data_flow)
        shared = (slot for step in own_steps if step is not None for slot in step_slots[step])
        self._shared = {*slots.without_edge, *shared}
        self._steps_of_slots = _StepsOfSlots(step_slots)

    def of(self, slot: int) -> tuple[int, ...]:
        """Return the steps to put back on the worklist when a slot changes, in order."""
        put_back = self._found[slot]
        if put_back is None:
            put_back = self._found[slot] = self._put_back_of(self._values[slot])
            steps = self._steps_of_slots.of(slot) if slot in self._shared else self._edges_at.get(slot)
            if steps:
                others = tuple([step for step in steps if step not in put_back])
                if others:
                    self.not_requeued[slot] = others
        return put_back

    def all_of(self, slot: int) -> tuple[int, ...]:
        """Return all steps that see a change of a slot, those put back first."""
        return self.of(slot) + self.not_requeued.get(slot, ())

    def steps_with(self, slot: int) -> Sequence[int]:
        """Return the steps with a slot among theirs, in order."""
        return self._steps_of_slots.of(slot)

    def of_value(self, value: Value) -> tuple[int, ...]:
        """Return the steps to put back when the sharding of one value of a slot changes, in order."""
        return self._put_back_of(value)


class _StepsOfSlots:
    """Steps by slot, in a flat array, as lists for all slots take ten times the memory."""

    __slots__ = ("_pairs", "_step_slots")

    def __init__(self, step_slots: Sequence[tuple[int, ...]]) -> None:
        self._step_slots = step_slots
        # Pairs of slot and step as one number each; made when first asked for, as few programs need it.
        self._pairs: array[int] | None = None

    def of(self, slot: int) -> Sequence[int]:
        """Return the steps of a slot, in order."""
        count = len(self._step_slots)
        if self._pairs is None:
            pairs = [slot * count + step for step, slots in enumerate(self._step_slots) for slot in slots]
            pairs.sort()
            self._pairs = array("q", pairs)
        first = slot * count
        begin = bisect_left(self._pairs, first)
        end = bisect_left(self._pairs, first + count, begin)
        return [pair - first for pair in self._pairs[begin:end]]


class _PutBack:
    """Per-value steps that a change of its sharding puts back on the worklist.

    These are: for an edge the users of the targets it stands for, the step that makes the value, then its users,
    newest use first. A use by a terminator or by a data flow op stands for the edge that begins there, a use by a call
    for the uses of the callee's argument, a returned value for the uses of the callers' results.
    """

    __slots__ = ("_callers", "_functions", "_semantics", "_slots", "_step_numbers", "_step_of")

    def __init__(self, program: Program, semantics: OpSemantics, slots: Slots, step_of: IdMap) -> None:
        self._semantics = semantics
        self._slots = slots
        self._step_of, self._step_numbers = step_of, step_of.numbers
        self._functions = program.functions
        self._callers = calls_by_callee(program)

    def of(self, value: Value) -> tuple[int, ...]:
        """Return the steps to put back when the sharding of ``value`` changes, in order."""
        owner, uses, step_of = value.owner, value.uses, self._step_numbers
        if type(owner) is Op and owner.name != DATA_FLOW_EDGE:
            # Nearly all values are results of ops with a step, all of whose users have one, too.
            defining_step = step_of[owner.id]
            if len(uses) == 1:
                other = step_of[uses[0][0].id]
                if defining_step != ABSENT != other != defining_step:
                    return defining_step, other
            else:
                steps = [defining_step, *[step_of[user.id] for user, _ in reversed(uses)]]
                if ABSENT not in steps:
                    return tuple(dict.fromkeys(steps))
        return self._of_any(value)

    def _of_any(self, value: Value) -> tuple[int, ...]:
        steps: dict[int, None] = {}
        op = value.owning_op
        if op.name == DATA_FLOW_EDGE and value.owner is op:
            edge = self._slots.edges.get(op.id)
            if edge is not None:
                for target in edge.data_flow.get_non_edge_owner_targets(edge.owner_op, edge.owner):
                    self._add_users(target, steps, None)
        self._add(op, steps)
        self._add_users(value, steps, None)
        return tuple(steps)

    def _add(self, op: Op, steps: dict[int, None]) -> None:
        step = self._step_of.numbers[op.id]
        if step != ABSENT:
            steps.setdefault(step)

    def _add_users(self, value: Value, steps: dict[int, None], seen: set[int] | None) -> None:
        """Add the steps of the users of a value, unless it has been seen; only calls lead to values seen before."""
        if seen is not None:
            if value.id in seen:
                return
            seen.add(value.id)
        numbers = self._step_of.numbers
        for user, number in reversed(value.uses):
            step = numbers[user.id]
            if step != ABSENT:
                steps.setdefault(step)
            elif not self._add_edge(user, number, steps):
                seen = {value.id} if seen is None else seen
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
        """Add the steps behind a use by a call, by a return, or by another terminator.

        Mirrors basic_propagation.cc::notifyUsersModified.
        """
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
