"""The visits of a log again, with what each moved and refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from attrs import evolve, field

from shardy_py.propagation.problem import Problem
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
        found: dict[int, list[int]] = {}
        for number, visit in enumerate(self.log.visits):
            found.setdefault(visit.step, []).append(number)
        return found

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
        return tuple([self._with_priority(one, explanation, visit) for one in refused])

    def _with_priority(self, refusal: StepRefusal, explanation: StepExplanation, visit: Visit) -> StepRefusal:
        priority = self.log.places[visit.place].user_priority
        slots = slots_of_visit(self.problem, visit.step)
        position = refusal.target if refusal.other is None else refusal.other
        start = self.problem.table.values[self.problem.initial[slots[position]]]
        if start is None or not self.log.user_priorities or refusal.reason not in (Reason.CLOSED, Reason.REPLICATED):
            return refusal
        if refusal.reason is Reason.CLOSED:
            own = start.of_dimension(dimension_of(explanation, position, refusal.factor))
            is_later = own.priority_or_default > priority
        else:
            later = [dim for dim in start.dim_shardings if dim.priority_or_default > priority]
            is_later = any_overlap(refusal.by, [axis for dim in later for axis in dim.axes])
        if not is_later:
            return refusal
        return evolve(refusal, reason=Reason.PRIORITY, detail=f"{refusal.reason.value} until a later user priority")
