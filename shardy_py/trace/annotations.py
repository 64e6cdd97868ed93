"""Annotations: the origins of the shardings with which propagation starts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from shardy_py.ir.graph.op_names import CONSTRAINT, DATA_FLOW_EDGE, FUNCTION, MANUAL_COMPUTATION, NAMED_COMPUTATION
from shardy_py.ir.graph.program import Op, Value
from shardy_py.propagation.problem import NO_TIES, Problem
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.labels import Labels
from shardy_py.values import frozen

_RESULT = re.compile(r"\bresult(\d+)$")


@frozen
class Annotation:
    """An annotation: the start of chains, or an obstacle to axes.

    Args:
        kind: ``argument``, ``result``, ``constraint``, ``manual computation``, ``op`` or ``group``.
        text: The thing that is annotated, readable.
        sharding: The sharding.
        owner: The slot it was written on, where a pass brought it from another one; else -1.
    """

    kind: str
    text: str
    sharding: TensorSharding
    owner: int = -1

    def __str__(self) -> str:
        return self.text


def capture_annotations(
    problem: Problem, labels: Labels, initial: Mapping[int, TensorSharding]
) -> dict[int, Annotation]:
    """Return the annotations of slots, while the program is as propagation saw it.

    Args:
        problem: The problem.
        labels: The names of values and ops.
        initial: Value id to the sharding that the user gave.
    """
    by_slot: dict[int, Annotation] = {}
    for slot, value in enumerate(problem.slot_values):
        sharding = problem.table.values[problem.initial[slot]]
        if sharding is not None:
            by_slot[slot] = _annotation(problem, labels, slot, value, sharding, initial)
    for step, (before, _) in problem.transforms.items():
        slot = problem.step_slots[step][-1]
        if slot in by_slot and problem.slot_values[slot].owning_op.operands[0].is_block_argument:
            # What the user wrote includes the manual axes, which are not visible in the body.
            by_slot[slot] = evolve(by_slot[slot], sharding=before(by_slot[slot].sharding))
    return by_slot


def _annotation(
    problem: Problem,
    labels: Labels,
    slot: int,
    value: Value,
    sharding: TensorSharding,
    initial: Mapping[int, TensorSharding],
) -> Annotation:
    name, op = labels.value(slot), value.owning_op
    if op.name == FUNCTION:
        return _of_function(value, name, sharding)
    if op.name == CONSTRAINT:
        return Annotation("constraint", f"sharding constraint {name}", sharding)
    if op.name == DATA_FLOW_EDGE and op.operands:
        return _of_edge(op.operands[0], name, sharding)
    from_users = None if value.id in initial else _from_users(problem, labels, slot, value, sharding, initial)
    return from_users or Annotation("op", f"sharding of {op.name} {name}".removesuffix(f" {op.name}"), sharding)


def _of_function(value: Value, name: str, sharding: TensorSharding) -> Annotation:
    if value.is_block_argument:
        return Annotation("argument", f"function argument {name}", sharding)
    number = _RESULT.sub(r"\1", name)
    return Annotation("result", f"function result {number}", sharding)


def _of_edge(owner: Value, name: str, sharding: TensorSharding) -> Annotation:
    flow = owner.owning_op
    if flow.name == NAMED_COMPUTATION:
        return _of_function(owner, name, sharding)
    if flow.name == MANUAL_COMPUTATION:
        which = "in_shardings" if owner.is_block_argument else "out_shardings"
        text = f"{which}[{owner.index}] of the manual computation {name}"
        return Annotation("manual computation", text, sharding)
    return Annotation("op", f"sharding of {flow.name} {name}", sharding)


def _from_users(
    problem: Problem,
    labels: Labels,
    slot: int,
    value: Value,
    sharding: TensorSharding,
    initial: Mapping[int, TensorSharding],
) -> Annotation | None:
    """Return the annotation of a user that a pass gave to the value, or that of a member of its sharding group."""
    for user, number in value.uses:
        if user.name == CONSTRAINT and _starts_with(problem, user.results[0], sharding):
            owner = problem.slot_of[user.results[0].id]
            text = f"sharding constraint {labels.value(owner)} of {labels.value(slot)}"
            return Annotation("constraint", text, sharding, owner)
        if user.name == MANUAL_COMPUTATION:
            text = f"in_shardings[{number}] of the manual computation {_results(problem, labels, user)}"
            return Annotation("manual computation", text, sharding)
    for member, _ in problem.tied.get(slot, NO_TIES).others():
        if problem.slot_values[member].id in initial:
            text = f"sharding of {labels.value(member)}, in a sharding group with {labels.value(slot)}"
            return Annotation("group", text, sharding, member)
    return None


def _starts_with(problem: Problem, value: Value, sharding: TensorSharding) -> bool:
    slot = problem.slot_of.get(value.id)
    initial = None if slot is None else problem.table.values[problem.initial[slot]]
    return initial is not None and initial.dim_shardings == sharding.dim_shardings


def _results(problem: Problem, labels: Labels, op: Op) -> str:
    slots = [problem.slot_of.get(value.id) for value in op.results]
    return ", ".join(labels.value(slot) for slot in slots if slot is not None)
