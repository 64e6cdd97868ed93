"""The visits of a log with what each moved and refused, and one more visit of each step at the end of a run.

The reference does not put back every op that sees a change, and ends although some op would still change something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from attrs import evolve, field

from shardy_py.propagation.problem import Problem
from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import Visit, VisitLog, directions_of_visit, rule_of_visit, slots_of_visit
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.identity import identity
from shardy_py.trace.reasons import Reason, StepRefusal
from shardy_py.trace.slot_moves import dimension_of
from shardy_py.trace.step import StepExplanation, explain_step
from shardy_py.values import define


@define(eq=False, slots=False)
class Visits:
    """The visits of a solve, explained when asked for; equal visits once.

    Args:
        problem: The problem that was solved.
        log: The visits.
    """

    problem: Problem
    log: VisitLog
    _explained: dict[object, StepExplanation | None] = field(factory=dict, init=False, repr=False)
    _known: dict[int, tuple[Visit, StepExplanation | None]] = field(factory=dict, init=False, repr=False)

    @cached_property
    def numbers_of(self) -> dict[int, list[int]]:
        """Step to the numbers of its visits."""
        numbers: dict[int, list[int]] = {}
        for number, visit in enumerate(self.log.visits):
            numbers.setdefault(visit.step, []).append(number)
        return numbers

    def last(self, step: int) -> Visit | None:
        """Return the last visit of a step; None where it was never visited."""
        numbers = self.numbers_of.get(step)
        return self.log.visits[numbers[-1]] if numbers else None

    def explain(self, visit: Visit) -> StepExplanation | None:
        """Return the moves and refusals of a visit, or None where its tensors have no mesh, or not the same."""
        # The shardings of a visit are as many as its tensors: a visit that is asked of again is known as an object.
        if identity(visit) in self._known:
            return self._known[identity(visit)][1]
        problem = self.problem
        rule, directions = rule_of_visit(problem, visit), directions_of_visit(problem, self.log, visit)
        strategy = self.log.places[visit.place].strategy
        key = (rule, directions, strategy, tuple(self._flags(visit).items()), visit.seen)
        if key not in self._explained:
            common = problem.table.common_mesh(visit.seen)
            is_possible = common is not None and not common[1].is_maximal
            values = [problem.table.values[sharding] for sharding in visit.seen]
            self._explained[key] = self.explain_with(visit, values) if is_possible else None
        self._known[identity(visit)] = visit, self._explained[key]
        return self._explained[key]

    def explain_with(self, visit: Visit, shardings: Sequence[TensorSharding | None]) -> StepExplanation:
        """Return the moves and refusals of a visit, had its tensors other shardings over the mesh that they share."""
        problem = self.problem
        common = problem.table.common_mesh(visit.seen)
        assert common is not None, "the tensors share a mesh"
        directions = directions_of_visit(problem, self.log, visit)
        strategy = self.log.places[visit.place].strategy
        rule = rule_of_visit(problem, visit)
        return explain_step(rule, shardings, common, directions, strategy, **self._flags(visit))

    def _flags(self, visit: Visit) -> dict[str, bool]:
        if visit.step < 0:
            return {}
        group = self.problem.groups[visit.group]
        # An edge whose target looks different from its sources is never conservative.
        conservative = group.conservative and visit.step not in self.problem.transforms
        return {"is_elementwise": group.is_elementwise, "conservative": conservative}

    def refusals(
        self, visit: Visit, target: int | None = None, factors: Collection[int] | None = None
    ) -> tuple[StepRefusal, ...]:
        """Return the refusals of a visit; `Reason.PRIORITY` is the reason of those that end with a later priority.

        Args:
            visit: The visit.
            target: The position of the tensor that refuses; None for all.
            factors: The factors along which it refuses; None for all.
        """
        explanation = self.explain(visit)
        if explanation is None:
            return ()
        refused = explanation.refused if target is None else explanation.refused_by(target, factors)
        return tuple([self._with_priority(refusal, explanation, visit) for refusal in refused])

    def _with_priority(self, refusal: StepRefusal, explanation: StepExplanation, visit: Visit) -> StepRefusal:
        priority = self.log.places[visit.place].user_priority
        slots = slots_of_visit(self.problem, visit.step)
        position = refusal.target if refusal.other is None else refusal.other
        start = self.problem.table.values[self.problem.initial[slots[position]]]
        if start is None or not self.log.user_priorities or refusal.reason not in (Reason.CLOSED, Reason.REPLICATED):
            return refusal
        if refusal.reason is Reason.CLOSED:
            own_priority = start.of_dimension(dimension_of(explanation, position, refusal.factor))
            is_later = own_priority.priority_or_default > priority
        else:
            later = [dim for dim in start.dim_shardings if dim.priority_or_default > priority]
            is_later = any_overlap(refusal.by, [axis for dim in later for axis in dim.axes])
        if not is_later:
            return refusal
        return evolve(refusal, reason=Reason.PRIORITY, detail=f"{refusal.reason.value} until a later user priority")


class FinalVisits:
    """Visits of the steps with the shardings of the end.

    Args:
        visits: The visits of the run.
        solution: The shardings of its end.
        erased: The steps of ops that are gone at the end.
    """

    def __init__(self, visits: Visits, solution: Solution, erased: frozenset[int]) -> None:
        self._visits = visits
        self._problem = visits.problem
        self._final = solution.shardings
        self._erased = erased
        self._known: dict[int, Visit | None] = {}
        self._changed: dict[int, tuple[int, ...]] = {}
        self._as_left: dict[int, bool] = {}
        # What the target of such an edge looks like from its sources depends on its op, which later passes change.
        for step in self._problem.transforms:
            self.changed_positions(step)

    def visit(self, step: int) -> Visit | None:
        """Return the last visit of a step with the shardings of the end; None where it was never visited."""
        if step not in self._known:
            last = self._visits.last(step)
            self._known[step] = None if last is None else last._replace(seen=self._shardings(step))
        return self._known[step]

    def explain(self, step: int) -> StepExplanation | None:
        """Return the moves and refusals; None where the step was never visited, or its tensors share no mesh."""
        visit = self.visit(step)
        return None if visit is None else self._visits.explain(visit)

    def is_as_left(self, step: int) -> bool:
        """Return whether the shardings of a step are those of its last visit, and that visit changed nothing."""
        if step not in self._as_left:
            visit, last = self.visit(step), self._visits.last(step)
            is_same = visit is None or last is None or (not last.outcome and last.seen == visit.seen)
            self._as_left[step] = is_same
        return self._as_left[step]

    def changed_positions(self, step: int) -> tuple[int, ...]:
        """Return the positions, among operands, then results, of the tensors that a step would change."""
        if step not in self._changed:
            self._changed[step] = () if self.is_as_left(step) else tuple(self._changes(step))
        return self._changed[step]

    def _changes(self, step: int) -> Iterator[int]:
        explanation, visit = self.explain(step), self.visit(step)
        if explanation is None or visit is None:
            return
        values, slots = self._problem.table.values, slots_of_visit(self._problem, step)
        for position, new in enumerate(explanation.shardings):
            old = values[visit.seen[position]]
            transform = self._problem.transforms.get(step) if position == len(slots) - 1 else None
            if transform is not None and new is not None:
                # The target of an edge is another one outside, where what is new may be there already.
                new, old = transform[1](new), values[self._final[slots[position]]]
            if slots[position] >= 0 and new != old:
                yield position

    @cached_property
    def unsettled(self) -> tuple[int, ...]:
        """Steps that would change a sharding, in order; function results last."""
        steps = [step for step in range(self._problem.num_steps) if step not in self._erased]
        results = range(-1, -1 - len(self._problem.function_results), -1)
        return tuple([step for step in (*steps, *results) if self.changed_positions(step)])

    def _shardings(self, step: int) -> tuple[int, ...]:
        """Return the ids of the shardings that a step would see: an edge sees its target as its sources do."""
        slots = slots_of_visit(self._problem, step)
        ids = tuple([self._final[slot] if slot >= 0 else NO_SHARDING for slot in slots])
        transform = self._problem.transforms.get(step)
        target = None if transform is None else self._problem.table.values[ids[-1]]
        if transform is None or target is None:
            return ids
        return (*ids[:-1], self._problem.table.intern(transform[0](target)))
