"""The trace of a run: its accepted updates, its moves and its refusals, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import field

from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import (
    SchedulePosition,
    TensorChange,
    Update,
    Visit,
    VisitLog,
    rule_of_visit,
    slots_of_visit,
)
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.trace.annotations import Annotation
from shardy_py.trace.history import History, replay
from shardy_py.trace.labels import Labels
from shardy_py.trace.ops_without_rule import OpWithoutRule
from shardy_py.trace.reasons import Reason, StepMove, StepRefusal
from shardy_py.trace.slot_moves import GROUP, SlotMove, dimension_of, direction_of
from shardy_py.trace.slots import RuleIndex, SlotRefusal, axes_of
from shardy_py.trace.step import StepExplanation
from shardy_py.trace.visits import FinalVisits, Visits
from shardy_py.values import define


@define(eq=False, slots=False)
class Trace:
    """The trace of a run.

    Attributes:
        problem: The compiled program.
        log: The visits.
        solution: The shardings of the end.
        schedule: The levels; None where there is only one.
        labels: The names of values and ops.
        annotations: Slot to the origin of the sharding it started with.
        ops_without_rule: Slot to the ops without a rule that use or make it.
        reductions: Step to how its reduction factors combine, by factor.
        erased: The steps of ops that nobody uses, which are gone at the end.
        visits: The visits, explained.
        final_visits: One more visit of each step.
    """

    problem: Problem
    log: VisitLog
    solution: Solution
    schedule: Schedule | None
    labels: Labels
    annotations: Mapping[int, Annotation]
    ops_without_rule: Mapping[int, Sequence[OpWithoutRule]]
    reductions: Mapping[int, Mapping[int, str]] = field(factory=dict)
    erased: frozenset[int] = frozenset()
    visits: Visits = field(init=False, repr=False)
    final_visits: FinalVisits = field(init=False, repr=False)
    _indices: dict[int, RuleIndex] = field(factory=dict, init=False, repr=False)
    _dimensions: dict[int, Mapping[str, Sequence[int]]] = field(factory=dict, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.visits = Visits(self.problem, self.log)
        self.final_visits = FinalVisits(self.visits, self.solution, self.erased)

    @cached_property
    def history(self) -> History:
        """Shardings of every tensor over time."""
        return replay(self.problem, self.log)

    @property
    def updates(self) -> tuple[Update, ...]:
        """Accepted updates, in order."""
        return tuple([update for _, update in self.history.updates])

    def moves(self) -> Iterator[SlotMove]:
        """Yield the moves of all accepted updates, in order."""
        for number, update in self.history.updates:
            yield from self.moves_of_update(number, update)

    def moves_of_update(self, number: int, update: Update) -> Iterator[SlotMove]:
        """Yield the moves of the accepted update of a visit, those within sharding groups among them."""
        yield from self.moves_of(number)
        for change in update.changes:
            if change.is_tied:
                yield from self._group_moves(number, update, change)

    def moves_of(self, number: int) -> Iterator[SlotMove]:
        """Yield the moves of one visit; those within sharding groups aside."""
        visit = self.log.visits[number]
        explanation = self.visits.explain(visit) if visit.outcome else None
        slots = slots_of_visit(self.problem, visit.step)
        for move in explanation.accepted if explanation else ():
            if slots[move.target] >= 0 and slots[move.source] >= 0:
                yield SlotMove(
                    slots[move.target],
                    dimension_of(explanation, move.target, move.factor),  # type: ignore[arg-type]
                    slots[move.source],
                    dimension_of(explanation, move.source, move.factor),  # type: ignore[arg-type]
                    move.axis,
                    visit.step,
                    number,
                    self.log.places[visit.place],
                    move.factor,
                    direction_of(explanation, move.source, move.target),  # type: ignore[arg-type]
                )

    def _group_moves(self, number: int, update: Update, change: TensorChange) -> Iterator[SlotMove]:
        """Yield the moves to a member of a sharding group from the member that an update changed."""
        source = update.values[change.position]
        old = change.old.dim_shardings if change.old is not None else ()
        slot_of, step = self.problem.slot_of, self.log.visits[number].step
        place = SchedulePosition(update.user_priority, update.level, update.strategy)
        for dimension, dim in enumerate(change.new.dim_shardings):
            had = old[dimension].axes if old else ()
            for axis in axis_set_difference(dim.axes, had, update.mesh):
                if source is not None:
                    ends = slot_of[change.value.id], dimension, slot_of[source.id], dimension
                    yield SlotMove(*ends, axis, step, number, place, -1, GROUP)

    def refusals(self) -> Iterator[SlotRefusal]:
        """Yield the refusals of all visits, in order; one that is met again in another visit comes again."""
        for number in range(len(self.log.visits)):
            yield from self.refusals_of(number)

    def refusals_of(self, number: int) -> Iterator[SlotRefusal]:
        """Yield the refusals of one visit, of the tensors that can be sharded."""
        step = self.log.visits[number].step
        slots, index = self.slots_and_index(step)
        if index is None:
            return
        for refusal in self.visits.refusals(self.log.visits[number]):
            if index.slot_dim(slots, refusal.target, refusal.factor) is not None:
                yield self.slot_refusal(step, number, refusal)

    def slot_refusal(self, step: int, number: int | None, refusal: StepRefusal) -> SlotRefusal:
        """Return a refusal of a step by slots.

        Args:
            step: The step.
            number: The number of the visit that decided; None for one more visit at the end.
            refusal: The refusal, of a tensor that can be sharded.
        """
        visit = self._deciding_visit(step, number)
        slots, index = slots_of_visit(self.problem, step), self.index_of(rule_of_visit(self.problem, visit))
        target = index.slot_dim(slots, refusal.target, refusal.factor)
        assert target is not None, "the tensor can be sharded"
        obstacle = None
        if refusal.other is not None:
            factor = refusal.factor if refusal.other_factor is None else refusal.other_factor
            obstacle = index.slot_dim(slots, refusal.other, factor)
        return SlotRefusal(
            refusal.reason,
            refusal.axis,
            target,
            step=step,
            visit=-1 if number is None else number,
            place=self.log.places[visit.place],
            source=index.slot_dim(slots, refusal.source, refusal.factor),
            factor=refusal.factor,
            obstacle=obstacle,
            by=refusal.by,
            detail=refusal.detail,
        )

    def deciding_visit(self, refusal: SlotRefusal) -> Visit:
        """Return the visit that decided a refusal of a step; for one as of the end, one more visit there."""
        assert refusal.step is not None, "a step refused the axis"
        return self._deciding_visit(refusal.step, refusal.visit if refusal.visit >= 0 else None)

    def _deciding_visit(self, step: int, number: int | None) -> Visit:
        visit = self.final_visits.visit(step) if number is None else self.log.visits[number]
        assert visit is not None, "a step that was never visited refuses nothing"
        return visit

    def final_refusals(
        self, step: int, target: int | None = None, factors: Collection[int] | None = None
    ) -> Iterator[tuple[int | None, StepRefusal]]:
        """Yield the refusals of a step at the end, each with the number of the visit that decided it.

        Where the tensors changed after the last visit no visit did: then these are the refusals of one more visit, and
        what it would let through.

        Args:
            step: The step.
            target: The position of the tensor that refuses; None for all.
            factors: The factors along which it refuses; None for all.
        """
        visit, numbers = self.final_visits.visit(step), self.visits.numbers_of.get(step)
        if visit is None or not numbers:
            return
        if self.final_visits.is_as_left(step):
            last = self.log.visits[numbers[-1]]
            yield from ((numbers[-1], refusal) for refusal in self.visits.refusals(last, target, factors))
            return
        explanation, changed = self.visits.explain(visit), self.final_visits.changed_positions(step)
        for move in _accepted(explanation, target):
            if move.target in changed and (factors is None or move.factor in factors):
                yield None, StepRefusal(move.target, move.source, move.factor, move.axis, Reason.NOT_REVISITED)
        yield from ((None, refusal) for refusal in self.visits.refusals(visit, target, factors))

    def slots_and_index(self, step: int) -> tuple[tuple[int, ...], RuleIndex | None]:
        """Return the slots of a step and the index of its rule; of a step without a rule, no slots."""
        problem = self.problem
        rule = problem.step_rules[step] if step >= 0 else problem.function_results[-1 - step][0]
        return ((), None) if rule is None else (slots_of_visit(problem, step), self.index_of(rule))

    def index_of(self, rule: OpShardingRule) -> RuleIndex:
        """Return the dimensions of the factors of a rule of the problem."""
        index = self._indices.get(identity(rule))
        if index is None:
            index = self._indices[identity(rule)] = RuleIndex(rule)
        return index

    def dimensions_with(self, slot: int, axis: AxisRef) -> list[int]:
        """Return the dimensions of a slot that have a part of an axis at the end."""
        number = self.history.moments[slot][-1].sharding
        sharding = self.problem.table.values[number]
        if sharding is None:
            return []
        if number not in self._dimensions:
            self._dimensions[number] = _dimensions_by_axis_name(sharding)
        dimensions = self._dimensions[number].get(axis.name, ())
        return [dimension for dimension in dimensions if any_overlap((axis,), axes_of(sharding, dimension))]

    @cached_property
    def steps_at(self) -> dict[int, list[tuple[int, int]]]:
        """Slot to the steps it takes part in, with its position in each."""
        steps: dict[int, list[tuple[int, int]]] = {}
        results = range(-1, -1 - len(self.problem.function_results), -1)
        for step in (*range(self.problem.num_steps), *results):
            for position, slot in enumerate(slots_of_visit(self.problem, step)):
                if slot >= 0:
                    steps.setdefault(slot, []).append((step, position))
        return steps


def _dimensions_by_axis_name(sharding: TensorSharding) -> Mapping[str, Sequence[int]]:
    """Return the name of each axis of a sharding to the dimensions that have a part of it."""
    dimensions: dict[str, list[int]] = {}
    for dimension, dim in enumerate(sharding.dim_shardings):
        for name in dict.fromkeys(axis.name for axis in dim.axes):
            dimensions.setdefault(name, []).append(dimension)
    return dimensions


def _accepted(explanation: StepExplanation | None, target: int | None) -> Sequence[StepMove]:
    if explanation is None:
        return ()
    return explanation.accepted if target is None else explanation.accepted_by(target)
