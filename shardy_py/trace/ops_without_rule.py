"""Ops without a sharding rule, through which nothing propagates."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.ir.graph.op_names import CALL, DATA_FLOW_EDGE, FUNCTION, MESH, REGION_RETURN, RETURN, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program
from shardy_py.propagation.problem import Problem
from shardy_py.trace.labels import Labels, OpLabel, OpWithoutStep

OpWithoutRule = tuple[OpLabel, tuple[int, ...]]
"""Ops without a sharding rule, through which nothing propagates."""

NO_RULE = "the op has no sharding rule; the coverage report lists such ops, and a plugin can give it a rule"
"""The reason of ops that could have a rule."""
_LONGEST = 200
_NO_OPS = (FUNCTION, MESH, DATA_FLOW_EDGE)
_HANDING_ON = (CALL, RETURN, REGION_RETURN)
_SILENT = (FUNCTION, CALL, RETURN, REGION_RETURN, MESH, SHARDING_GROUP, DATA_FLOW_EDGE)


def capture_ops_without_rule(
    program: Program, problem: Problem, names: Mapping[int, str]
) -> dict[int, list[OpWithoutRule]]:
    """Return, for every slot, the ops without a rule at it, while the program is as propagation saw it.

    Args:
        program: The program.
        problem: Its problem.
        names: Slot to name.
    """
    with_rule = {op.id for op, rule in zip(problem.step_ops, problem.step_rules, strict=True) if rule is not None}
    flowing = {op.operands[0].owning_op.id for op in program.walk() if op.name == DATA_FLOW_EDGE and op.operands}
    by_slot: dict[int, list[OpWithoutRule]] = {}
    for op in program.walk():
        if op.id in with_rule or op.id in flowing or op.name in _SILENT or _is_terminator(op):
            continue
        slots = tuple([problem.slot_of.get(value.id, -1) for value in (*op.operands, *op.results)])
        if len(slots) < 2:
            continue
        results = ", ".join(names[slot] for slot in slots[len(op.operands) :] if slot >= 0)
        label = OpLabel(op.name, results, op.location)
        for slot in dict.fromkeys(slots):
            if slot >= 0:
                by_slot.setdefault(slot, []).append((label, slots))
    return by_slot


def capture_other_ops(
    program: Program, problem: Problem, labels: Labels, given_names: Mapping[int, str]
) -> tuple[tuple[OpWithoutStep, ...], dict[int, int]]:
    """Return the ops that no step propagates through, and the index of each step's op, while the program is as it was.

    Args:
        program: The program.
        problem: Its problem.
        labels: The names of its slots.
        given_names: Names of ops in the given program, by the ids of the ops that stand for them.
    """
    step_of = {op.id: step for step, op in reversed(list(enumerate(problem.step_ops)))}
    flowing = {op.operands[0].owning_op.id for op in program.walk() if op.name == DATA_FLOW_EDGE and op.operands}
    index_of = {op.id: index for index, op in enumerate(program.walk())}
    others = []
    for op in program.walk():
        if op.id in step_of or op.id in flowing or op.name in _NO_OPS:
            continue
        slots = tuple([problem.slot_of.get(value.id, -1) for value in (*op.operands, *op.results)])
        operands, results = slots[: len(op.operands)], slots[len(op.operands) :]
        shown = ", ".join(labels.of_slot[slot] for slot in results if slot >= 0)
        label = OpLabel(given_names.get(op.id, op.name), shown, op.location)
        others.append(OpWithoutStep(label, op.name, index_of[op.id], operands, results, _attributes(op), _reason(op)))
    indices, last = {}, 0
    for step, op in enumerate(problem.step_ops):
        # An op that nobody uses is gone by now; it stood behind the one before it.
        last = indices[step] = index_of.get(op.id, last)
    return tuple(others), indices


def _attributes(op: Op) -> str:
    """Return the attributes of an op as a short text; those of constants are long and not wanted."""
    if not op.operands:
        return ""
    text = ", ".join(f"{name} = {value}" for name, value in op.attributes.items() if not name.startswith("sdy."))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _reason(op: Op) -> str:
    """Return why nothing propagates through an op."""
    if op.name in _HANDING_ON or _is_terminator(op):
        return "it only hands values on, to what is around it or called"
    if not op.operands:
        return "it has no operands, so its results get their shardings from their users alone"
    return NO_RULE if op.results else "it has no results, and no rule that would tie its operands to each other"


def _is_terminator(op: Op) -> bool:
    return op.parent is not None and op.parent.last is op and not op.results
