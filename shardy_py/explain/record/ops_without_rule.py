"""Ops without a sharding rule, through which nothing propagates."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.explain.record.labels import OpLabel
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.op_names import CALL, DATA_FLOW_EDGE, FUNCTION, MESH, REGION_RETURN, RETURN, SHARDING_GROUP
from shardy_py.propagation.problem import Problem

OpWithoutRule = tuple[OpLabel, tuple[int, ...]]
"""Ops without a sharding rule, through which nothing propagates."""

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
    found: dict[int, list[OpWithoutRule]] = {}
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
                found.setdefault(slot, []).append((label, slots))
    return found


def _is_terminator(op: Op) -> bool:
    return op.parent is not None and op.parent.last is op and not op.results
