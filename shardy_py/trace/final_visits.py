"""One more visit of each step at the end of a run.

The reference does not put back every op that sees a change, and ends although some op would still change something.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import Visit, slots_of_visit
from shardy_py.trace.step import StepExplanation
from shardy_py.trace.visits import Visits


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
        """Return whether a step sees at the end what it saw in its last visit, which changed nothing."""
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
