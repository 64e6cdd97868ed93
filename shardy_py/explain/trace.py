"""The trace of a run: what was accepted and what was refused, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, field, frozen

from shardy_py.explain.annotations import Annotation
from shardy_py.explain.bare import Bare
from shardy_py.explain.history import History, replay
from shardy_py.explain.labels import Labels
from shardy_py.explain.reasons import Code, Refusal
from shardy_py.explain.step import StepExplanation, explain_step
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.schedule import Schedule
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import (
    Place,
    Update,
    Visit,
    VisitLog,
    directions_of_visit,
    op_of_visit,
    rule_of_visit,
    slots_of_visit,
)
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import TensorMapping


@frozen(eq=False)
class TracedRefusal:
    """A refusal and where it happened.

    Args:
        visit: The number of the visit.
        op: The op; the function for a function result.
        value: The value that carries the sharding that stayed without the axis; None where it cannot be sharded.
        dimension: The dimension of the value.
        place: The user priority, the level, and the strategy.
        refusal: What was refused and why, in terms of the step.
    """

    visit: int
    op: Op
    value: Value | None
    dimension: int
    place: Place
    refusal: Refusal

    @property
    def axis(self) -> AxisRef:
        """The axis, or what of it was refused."""
        return self.refusal.axis

    @property
    def reason(self) -> Code:
        """Why."""
        return self.refusal.code


@define(eq=False, slots=False)
class Trace:
    """What a run did.

    Attributes:
        problem: The compiled program.
        log: The visits.
        solution: Where they led.
        schedule: The levels; None where there is only one.
        labels: What to call values and ops.
        annotations: Slot to where the sharding it started with comes from.
        bare: Slot to the ops without a rule that use or make it.
    """

    problem: Problem
    log: VisitLog
    solution: Solution
    schedule: Schedule | None
    labels: Labels
    annotations: Mapping[int, Annotation]
    bare: Mapping[int, Sequence[Bare]]
    _explained: dict[object, StepExplanation | None] = field(factory=dict, repr=False)

    @cached_property
    def history(self) -> History:
        """What every tensor had when."""
        return replay(self.problem, self.log)

    @property
    def updates(self) -> tuple[Update, ...]:
        """The accepted updates, in order."""
        return tuple([update for _, update in self.history.updates])

    def refusals(self) -> Iterator[TracedRefusal]:
        """Yield the refusals of all visits, in order; one that is met again in another visit comes again."""
        for number in range(len(self.log.visits)):
            yield from self.refusals_of(number)

    def refusals_of(self, number: int) -> Iterator[TracedRefusal]:
        """Yield the refusals of one visit."""
        visit = self.log.visits[number]
        explanation = self.explain_visit(visit)
        if explanation is None:
            return
        slots = slots_of_visit(self.problem, visit.step)
        for refusal in explanation.refused:
            slot = slots[refusal.target]
            yield TracedRefusal(
                number,
                op_of_visit(self.problem, visit.step),
                self.problem.slot_values[slot] if slot >= 0 else None,
                dimension_of(explanation, refusal.target, refusal.factor),
                self.log.places[visit.place],
                refusal,
            )

    def explain_visit(self, visit: Visit, seen: tuple[int, ...] | None = None) -> StepExplanation | None:
        """Return what a visit did and refused, or None where the tensors have no mesh, or not the same.

        Args:
            visit: The visit.
            seen: Other shardings for it to see than it saw.
        """
        problem = self.problem
        seen = visit.seen if seen is None else seen
        rule, directions = rule_of_visit(problem, visit), directions_of_visit(problem, self.log, visit)
        strategy = self.log.places[visit.place].strategy
        group = problem.groups[visit.group] if visit.step >= 0 else None
        flags = {} if group is None else _flags(problem, visit.step, group.is_elementwise, group.conservative)
        key = (rule, directions, strategy, tuple(flags.items()), seen)
        if key not in self._explained:
            common = problem.table.common_mesh(seen)
            values = [problem.table.values[sharding] for sharding in seen]
            is_possible = common is not None and not common[1].is_maximal
            self._explained[key] = (
                explain_step(rule, values, common, directions, strategy, **flags)  # type: ignore[arg-type]
                if is_possible
                else None
            )
        return self._explained[key]

    def shape_of(self, step: int) -> tuple[tuple[int, ...], tuple[TensorMapping, ...]]:
        """Return the slots of a step and the mappings of its rule; of a step without a rule, nothing."""
        problem = self.problem
        rule = problem.step_rules[step] if step >= 0 else problem.function_results[-1 - step][0]
        return ((), ()) if rule is None else (slots_of_visit(problem, step), rule.mappings)

    @cached_property
    def visits_of(self) -> dict[int, list[int]]:
        """Step to the numbers of its visits."""
        found: dict[int, list[int]] = {}
        for number, visit in enumerate(self.log.visits):
            found.setdefault(visit.step, []).append(number)
        return found

    @cached_property
    def steps_at(self) -> dict[int, list[tuple[int, int]]]:
        """Slot to the steps it takes part in, with its position in each."""
        found: dict[int, list[tuple[int, int]]] = {}
        results = range(-1, -1 - len(self.problem.function_results), -1)
        for step in (*range(self.problem.num_steps), *results):
            for position, slot in enumerate(slots_of_visit(self.problem, step)):
                if slot >= 0:
                    found.setdefault(slot, []).append((step, position))
        return found


def _flags(problem: Problem, step: int, is_elementwise: bool, conservative: bool) -> dict[str, bool]:
    # An edge whose target looks different from its sources is never conservative.
    return {"is_elementwise": is_elementwise, "conservative": conservative and step not in problem.transforms}


def dimension_of(explanation: StepExplanation, position: int, factor: int) -> int:
    """Return which dimension of a tensor of a step a factor belongs to.

    Raises:
        ValueError: none.
    """
    for dimension, factors in enumerate(explanation.rule.mappings[position]):
        if factor in factors:
            return dimension
    raise ValueError(f"tensor {position} has no factor {factor}")
