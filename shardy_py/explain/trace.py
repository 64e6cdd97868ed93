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
    Change,
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
from shardy_py.sharding.axis_lists import axis_set_difference
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


@frozen(eq=False)
class TracedMove:
    """An axis that an accepted update brought onto a dimension.

    Args:
        visit: The number of the visit.
        op: The op; the function for a function result.
        value: The value that carries the sharding that got the axis.
        dimension: The dimension that got it.
        source: The value it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part of it that came.
        factor: The factor of the op's rule; -1 for a sharding group, which follows one of its members.
        direction: ``forward``, ``backward``, ``sideways``, or ``group``.
        place: The user priority, the level, and the strategy.
    """

    visit: int
    op: Op
    value: Value
    dimension: int
    source: Value
    source_dimension: int
    axis: AxisRef
    factor: int
    direction: str
    place: Place


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

    def moves(self) -> Iterator[TracedMove]:
        """Yield the axes that the accepted updates brought, in order."""
        for number, update in self.history.updates:
            yield from self.moves_of(number)
            for change in update.changes:
                if change.is_tied:
                    yield from self._group_moves(number, update, change)

    def moves_of(self, number: int) -> Iterator[TracedMove]:
        """Yield the axes that came in one visit; what sharding groups got with them aside."""
        visit = self.log.visits[number]
        explanation = self.explain_visit(visit) if visit.outcome else None
        slots, values = slots_of_visit(self.problem, visit.step), self.problem.slot_values
        for one in explanation.accepted if explanation else ():
            if slots[one.target] >= 0 and slots[one.source] >= 0:
                yield TracedMove(
                    number,
                    op_of_visit(self.problem, visit.step),
                    values[slots[one.target]],
                    dimension_of(explanation, one.target, one.factor),  # type: ignore[arg-type]
                    values[slots[one.source]],
                    dimension_of(explanation, one.source, one.factor),  # type: ignore[arg-type]
                    one.axis,
                    one.factor,
                    direction_of(explanation, one.source, one.target),  # type: ignore[arg-type]
                    self.log.places[visit.place],
                )

    def _group_moves(self, number: int, update: Update, change: Change) -> Iterator[TracedMove]:
        """Yield the axes that a member of a sharding group got as another one changed."""
        source = update.values[change.position]
        old = change.old.dim_shardings if change.old is not None else ()
        for dimension, dim in enumerate(change.new.dim_shardings):
            had = old[dimension].axes if old else ()
            for axis in axis_set_difference(dim.axes, had, update.mesh):
                if source is not None:
                    place = Place(update.user_priority, update.level, update.strategy)
                    args = (update.op, change.value, dimension, source, dimension, axis, -1, "group", place)
                    yield TracedMove(number, *args)

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


def direction_of(explanation: StepExplanation, source: int, target: int) -> str:
    """Return which way an axis goes from one tensor of a step to another."""
    split = len(explanation.old.operands)
    if (source < split) == (target < split):
        return "sideways"
    return "forward" if source < split else "backward"


def dimension_of(explanation: StepExplanation, position: int, factor: int) -> int:
    """Return which dimension of a tensor of a step a factor belongs to.

    Raises:
        ValueError: none.
    """
    for dimension, factors in enumerate(explanation.rule.mappings[position]):
        if factor in factors:
            return dimension
    raise ValueError(f"tensor {position} has no factor {factor}")
