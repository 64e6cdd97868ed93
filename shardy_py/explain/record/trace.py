"""The trace of a run: what was accepted and what was refused, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import define, evolve, field

from shardy_py.explain.record.annotations import Annotation
from shardy_py.explain.record.ending import Ending
from shardy_py.explain.record.events import TracedMove, TracedRefusal, dimension_of, direction_of
from shardy_py.explain.record.history import History, replay
from shardy_py.explain.record.labels import Labels
from shardy_py.explain.record.ops_without_rule import Bare
from shardy_py.explain.record.reasons import Code, Refusal
from shardy_py.explain.record.step import StepExplanation, explain_step
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
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding


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
        reductions: Step to how its reduction factors combine, by factor.
        erased: The steps of ops that nobody uses, which are gone at the end.
        ending: What the steps would do if they were visited once more.
    """

    problem: Problem
    log: VisitLog
    solution: Solution
    schedule: Schedule | None
    labels: Labels
    annotations: Mapping[int, Annotation]
    bare: Mapping[int, Sequence[Bare]]
    reductions: Mapping[int, Mapping[int, str]] = field(factory=dict)
    erased: frozenset[int] = frozenset()
    _explained: dict[object, StepExplanation | None] = field(factory=dict, repr=False)
    ending: Ending = field(init=False, repr=False)

    @cached_property
    def history(self) -> History:
        """What every tensor had when."""
        return replay(self.problem, self.log)

    def __attrs_post_init__(self) -> None:
        self.ending = Ending(self)

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
        for refusal in self.refused(visit):
            slot = slots[refusal.target]
            yield TracedRefusal(
                number,
                op_of_visit(self.problem, visit.step),
                self.problem.slot_values[slot] if slot >= 0 else None,
                dimension_of(explanation, refusal.target, refusal.factor),
                self.log.places[visit.place],
                refusal,
            )

    def refused(self, visit: Visit) -> tuple[Refusal, ...]:
        """Return the refusals of a visit; what only waits for its user priority is called by that."""
        explanation = self.explain_visit(visit)
        if explanation is None:
            return ()
        priority = self.log.places[visit.place].user_priority
        slots = slots_of_visit(self.problem, visit.step)
        return tuple([self._with_priority(one, explanation, slots, priority) for one in explanation.refused])

    def _with_priority(
        self, refusal: Refusal, explanation: StepExplanation, slots: tuple[int, ...], priority: int
    ) -> Refusal:
        position = refusal.target if refusal.other is None else refusal.other
        start = self.problem.table.values[self.problem.initial[slots[position]]]
        if start is None or not self.log.user_priorities or refusal.code not in (Code.CLOSED, Code.REPLICATED):
            return refusal
        if refusal.code is Code.CLOSED:
            own = start.of_dimension(dimension_of(explanation, position, refusal.factor))
            is_later = own.priority_or_default > priority
        else:
            later = [dim for dim in start.dim_shardings if dim.priority_or_default > priority]
            is_later = any_overlap(refusal.by, [axis for dim in later for axis in dim.axes])
        if not is_later:
            return refusal
        return evolve(refusal, code=Code.PRIORITY, detail=f"{refusal.code.value} until a later user priority")

    def stops_of(self, step: int) -> Iterator[tuple[int | None, Refusal]]:
        """Yield what keeps axes from going through a step at the end, each with the visit that decided it.

        Where the tensors changed after the last visit no visit did: then it is what the step would refuse now, and what
        it would let through.
        """
        visit, numbers = self.ending.visit(step), self.visits_of.get(step)
        if visit is None or not numbers:
            return
        if self.ending.is_as_left(step):
            yield from ((numbers[-1], refusal) for refusal in self.refused(self.log.visits[numbers[-1]]))
            return
        explanation, changed = self.explain_visit(visit), self.ending.changed_positions(step)
        for one in explanation.accepted if explanation is not None else ():
            if one.target in changed:
                yield None, Refusal(one.target, one.source, one.factor, one.axis, Code.NOT_REVISITED)
        yield from ((None, refusal) for refusal in self.refused(visit))

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

    def explain_otherwise(self, visit: Visit, values: Sequence[TensorSharding | None]) -> StepExplanation:
        """Return what a visit of a step whose tensors share a mesh would do with other shardings than it saw."""
        problem = self.problem
        common = problem.table.common_mesh(visit.seen)
        assert common is not None, "the tensors share a mesh"
        group = problem.groups[visit.group] if visit.step >= 0 else None
        flags = {} if group is None else _flags(problem, visit.step, group.is_elementwise, group.conservative)
        directions = directions_of_visit(problem, self.log, visit)
        strategy = self.log.places[visit.place].strategy
        return explain_step(rule_of_visit(problem, visit), values, common, directions, strategy, **flags)

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
