"""Explanations of a traced run, in the names of its result's text or of the module it came from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from shardy_py.api.summary import RESHARDS, sharding_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.answer.explain_op import explain_op
from shardy_py.explain.answer.explain_value import Subject, explain_value
from shardy_py.explain.answer.explanations import find_unsettled
from shardy_py.explain.answer.find import find_slot, find_step
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_values
from shardy_py.plugins import Registry
from shardy_py.trace.labels import Labels, program_names
from shardy_py.trace.original_names import native_names
from shardy_py.trace.trace import Trace
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.explain.answer.explanations import NotSettled, OpExplanation, ValueExplanation

Names = Literal["result", "input"]


@define(frozen=True, slots=False, eq=False)
class Explainer:
    """Explanations of one traced run.

    Args:
        program: The propagated program.
        main: Its main function.
        registry: The definitions of ops.
        trace: The trace of the run.
        find_value: Returns the value of the program that a native value stands for.
    """

    program: Program
    main: Op
    registry: Registry
    trace: Trace
    find_value: Callable[[Any], Value]

    def explain(self, value: Any, dim: int | None, *, names: Names) -> ValueExplanation:
        """Return the explanation of a tensor, for one dimension or for all."""
        labels = self._labels(names)
        subject = self._subject_of_value(labels, value) or self._subject_of_key(labels, value)
        return explain_value(self.trace, labels, subject, dim)

    def explain_op(self, op: str, *, names: Names) -> OpExplanation:
        """Return the explanation of an op: its updates and refusals."""
        labels = self._labels(names)
        return explain_op(self.trace, labels, find_step(labels, op))

    def unsettled(self, *, names: Names) -> tuple[NotSettled, ...]:
        """Return the axes that one more visit of an op would bring."""
        trace = self.trace
        labels = self._labels(names) if trace.final_visits.unsettled else trace.labels
        return tuple(find_unsettled(trace, labels))

    def _labels(self, names: Names) -> Labels:
        return self.trace.labels if names == "input" else self._result_labels

    @cached_property
    def _result_labels(self) -> Labels:
        """Labels by the names in the text of the result."""
        names = program_names(self.program, self.main, native_names(self.program)[0])
        living = {value.id: value for function in self.program.functions.values() for value in _all_values(function)}
        slots: dict[str, int] = {}
        others: set[str] = set()
        known: dict[int, int | None] = {}
        for value_id, name in names.items():
            slot = _slot(self.program, self.trace, living[value_id], known)
            if slot is None:
                others.add(name)
            else:
                slots[name] = slot
        return self.trace.labels.renamed(slots, frozenset(others))

    def _subject_of_value(self, labels: Labels, key: Any) -> Subject | None:
        """Return the tensor of a value of the program or of the native module; None for other keys."""
        if isinstance(key, (int, str)):
            return None
        value = self.find_value(key)
        slot = _slot(self.program, self.trace, value, {})
        if slot is None:
            raise OptionError(Diagnostic("unknown-value", f"propagation did not see {value!r}"))
        return Subject(slot, labels.value(slot), value, sharding_of(self.program, value, self.registry))

    def _subject_of_key(self, labels: Labels, key: int | str) -> Subject:
        trace = self.trace
        slot = find_slot(labels, key)
        value = trace.problem.slot_values[slot]
        name = labels.value(slot)
        if isinstance(key, str):
            requested_names = {key.strip(), f"%{key.strip().removeprefix('%')}"} & {
                label for label, at in labels.slots.items() if at == slot
            }
            # A value of the same edge keeps the name that was asked for.
            name = next(iter(sorted(requested_names - {labels.printed(slot)})), name)
        living = _living(self.program, slot, trace)
        final = None if living is None else sharding_of(self.program, living, self.registry)
        return Subject(slot, name, living or value, final)


def _all_values(function: Any) -> list[Value]:
    return [*all_values(function), *function.function_results]


def _slot(program: Program, trace: Trace, value: Value, known: dict[int, int | None]) -> int | None:
    """Return the slot of a value of a result; that of the operand for a reshard, of the function for a call.

    Args:
        program: The result.
        trace: The trace.
        value: The value.
        known: The slots of other values, by value id; more are added, as reshards may be a long chain.
    """
    slot_of = trace.problem.slot_of
    passed: list[int] = []
    source: Value | None = value
    while source is not None and source.id not in known:
        passed.append(source.id)
        known[source.id] = slot_of.get(source.id)
        if source.id in slot_of:
            break
        op = source.defining_op
        is_reshard = op is not None and op.name in RESHARDS and op.operands
        source = op.operands[0] if op is not None and is_reshard else _returned(program, source)
    slot = None if source is None else known[source.id]
    known.update(dict.fromkeys(passed, slot))
    return slot


def _returned(program: Program, value: Value) -> Value | None:
    """Return the value that a function returns, for a result of it or of a call of it."""
    op = value.defining_op
    if op is None or op.name not in (FUNCTION, CALL):
        return None
    callee = op if op.name == FUNCTION else program.functions.get(op.attributes["callee"].name)
    block = next((block for region in callee.regions for block in region.blocks), None) if callee else None
    return block.last.operands[value.index] if block and block.last else None


def _living(program: Program, slot: int, trace: Trace) -> Value | None:
    """Return the value of a slot that is in the result; where there are several, what carries the sharding."""
    slot_of, carrier = trace.problem.slot_of, None
    for function in program.functions.values():
        for value in _all_values(function):
            if slot_of.get(value.id) == slot:
                if value is trace.problem.slot_values[slot] or value.owning_op.name == FUNCTION:
                    return value
                carrier = carrier or value
    return carrier
