"""Explanation of an op: its rule, the moves through it, its refusals."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.describe import Describer
from shardy_py.explain.answer.explanations import FactorExplanation, OpExplanation, TensorOfOp
from shardy_py.propagation.steps.factors import Direction
from shardy_py.propagation.trace import slots_of_visit
from shardy_py.sharding.rule import OpShardingRule, factor_symbol
from shardy_py.trace.labels import Labels, OpWithoutStep
from shardy_py.trace.missing_axes import RefusalSearch
from shardy_py.trace.ops_without_rule import NO_RULE
from shardy_py.trace.reasons import Reason, StepRefusal
from shardy_py.trace.slot_moves import SlotMove
from shardy_py.trace.slots import SlotRefusal
from shardy_py.trace.trace import Trace


def explain_op(trace: Trace, labels: Labels, step: int) -> OpExplanation:
    """Explain an op.

    Args:
        trace: The trace.
        labels: The names to use.
        step: The step of the op, or the number of one through which nothing propagates.
    """
    other = labels.other(step)
    if other is not None:
        return _explain_other(trace, labels, other)
    rule, label = trace.problem.step_rules[step], labels.of_step[step]
    if rule is None:
        split = len(trace.problem.step_ops[step].operands)
        slots = slots_of_visit(trace.problem, step)
        return _explain_other(
            trace, labels, OpWithoutStep(label, label.name, -1, slots[:split], slots[split:], "", NO_RULE)
        )
    describer = Describer(trace, labels)
    return OpExplanation(
        str(label),
        label.location,
        str(rule),
        tuple(_tensors(trace, labels, step, rule)),
        tuple(_factors(trace, labels, step, rule)),
        tuple([describer.move(move) for move in _moves(trace, step)]),
        tuple([describer.refusal(slot_refusal) for slot_refusal in _refusals(trace, step)]),
    )


def _explain_other(trace: Trace, labels: Labels, other: OpWithoutStep) -> OpExplanation:
    """Explain an op through which nothing propagates."""
    slots = [("operand", *item) for item in enumerate(other.operands)]
    slots += [("result", *item) for item in enumerate(other.results)]
    tensors = tuple([_tensor(trace, labels, f"{word} {number}", slot) for word, number, slot in slots])
    label = other.label
    return OpExplanation(str(label), label.location, "", tensors, (), (), (), other.reason, other.attributes)


def _tensor(trace: Trace, labels: Labels, position: str, slot: int) -> TensorOfOp:
    sharding = trace.history.last(slot) if slot >= 0 else None
    return TensorOfOp(position, labels.value(slot), "" if sharding is None else str(sharding))


def _tensors(trace: Trace, labels: Labels, step: int, rule: OpShardingRule) -> Iterator[TensorOfOp]:
    split = len(rule.operand_mappings)
    for position, slot in enumerate(slots_of_visit(trace.problem, step)):
        name = f"operand {position}" if position < split else f"result {position - split}"
        yield _tensor(trace, labels, name, slot)


def _factors(trace: Trace, labels: Labels, step: int, rule: OpShardingRule) -> Iterator[FactorExplanation]:
    slots = slots_of_visit(trace.problem, step)
    levels = range(len(trace.schedule.levels) if trace.schedule is not None else 1)
    group = trace.problem.step_groups[step]
    directions = [trace.log.directions_of(step, group, level) for level in levels]
    for factor in range(rule.num_factors):
        places = [
            f"{labels.value(slot)} dim {dimension}"
            for slot, mapping in zip(slots, rule.mappings, strict=True)
            for dimension, factors in enumerate(mapping)
            if factor in factors
        ]
        yield FactorExplanation(
            factor_symbol(factor),
            rule.factor_sizes[factor],
            rule.kind(factor).value,
            factor in rule.blocked_propagation_factors,
            tuple(places),
            tuple([str(Direction(level_directions[factor]).name).lower() for level_directions in directions]),
            _combiner(trace, step, rule, factor),
        )


def _combiner(trace: Trace, step: int, rule: OpShardingRule, factor: int) -> str:
    """Return the combiner of the partial results along a factor, "" where it is not reduced."""
    if factor not in rule.reduction_factors:
        return ""
    return trace.reductions.get(step, {}).get(factor) or rule.combiner(factor).value


def _moves(trace: Trace, step: int) -> Iterator[SlotMove]:
    for number in trace.visits.numbers_of.get(step, ()):
        yield from trace.moves_of(number)


def _refusals(trace: Trace, step: int) -> Iterator[SlotRefusal]:
    """Yield the refusals at the end, and before them those in which one factor lost to another."""
    search, numbers = RefusalSearch(trace), trace.visits.numbers_of.get(step, [])
    slots, index = trace.slots_and_index(step)
    if index is None:
        return
    lost = [
        (number, refusal)
        for number in numbers
        for refusal in trace.visits.refusals(trace.log.visits[number])
        if refusal.reason is Reason.LOST
    ]
    seen: set[StepRefusal] = set()
    for number, refusal in (*lost, *trace.final_refusals(step)):
        slot_dim = index.slot_dim(slots, refusal.target, refusal.factor)
        if refusal not in seen and slot_dim is not None:
            seen.add(refusal)
            yield search.with_causes(trace.slot_refusal(step, number, refusal), refusal)
