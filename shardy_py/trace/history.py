"""Shardings of every tensor of a solve over time, from the visits of its log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from shardy_py.propagation.problem import Problem
from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.solve import apply_round
from shardy_py.propagation.trace import Update, Visit, VisitLog, changed_slots, make_update
from shardy_py.propagation.user_priorities import PriorityRound, start_priorities
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


class Cause(Enum):
    """Causes of a change of a sharding."""

    START = "start"
    PRIORITY = "priority"
    VISIT = "visit"
    GROUP = "group"
    SIBLING = "sibling"


class ShardingChange(NamedTuple):
    """A time at which the sharding of a slot changed.

    Attributes:
        time: -1 at the start, 2n + 1 for visit number n, 2n where a user priority began just before it.
        sharding: The id of the sharding from then on.
        cause: The cause of the change.
        position: For a visit, the position of the tensor in its step; for a group, that of the member that changed.
    """

    time: int
    sharding: int
    cause: Cause
    position: int = -1

    @property
    def visit(self) -> int:
        """The number of the visit."""
        return self.time // 2


@define(eq=False)
class History:
    """The moments of every slot, in order.

    Attributes:
        problem: The problem that was solved.
        moments: Slot to its moments; each has one at the start.
        updates: The accepted updates, each with the number of its visit.
    """

    problem: Problem
    moments: list[list[ShardingChange]]
    updates: list[tuple[int, Update]]

    def before(self, slot: int, time: int) -> ShardingChange:
        """Return the last moment of a slot before a time."""
        moments = self.moments[slot]
        return moments[bisect_right(moments, time - 1, key=lambda moment: moment.time) - 1]

    def sharding(self, moment: ShardingChange) -> TensorSharding | None:
        """Return the sharding of a moment."""
        return self.problem.table.values[moment.sharding]

    def last(self, slot: int) -> TensorSharding | None:
        """Return the sharding of a slot at the end."""
        return self.sharding(self.moments[slot][-1])

    def backwards(self, slot: int, time: int) -> Iterator[tuple[ShardingChange, TensorSharding | None]]:
        """Yield the moments of a slot before a time, the last one first, each with the sharding before it."""
        moments = self.moments[slot]
        for index in range(bisect_right(moments, time - 1, key=lambda moment: moment.time) - 1, -1, -1):
            yield moments[index], self.sharding(moments[index - 1]) if index else None


def replay(problem: Problem, log: VisitLog) -> History:
    """Return the history of a solve."""
    return _Replay(problem, log).run()


class _Replay:
    def __init__(self, problem: Problem, log: VisitLog) -> None:
        self.problem, self.log = problem, log
        self.current = list(problem.initial)
        self.rounds: list[PriorityRound] = start_priorities(problem, self.current) if log.user_priorities else []
        self.moments = [[ShardingChange(-1, sharding, Cause.START)] for sharding in self.current]
        self.updates: list[tuple[int, Update]] = []

    def run(self) -> History:
        """Apply all visits, in order."""
        for number, visit in enumerate(self.log.visits):
            self._begin_rounds(2 * number, self.log.places[visit.place].user_priority)
            if visit.outcome:
                self._apply(number, visit)
        for round_ in self.rounds:
            self._begin(2 * len(self.log.visits), round_)
        return History(self.problem, self.moments, self.updates)

    def _begin_rounds(self, time: int, user_priority: int) -> None:
        while self.rounds and self.rounds[0].priority <= user_priority:
            self._begin(time, self.rounds.pop(0))

    def _begin(self, time: int, round_: PriorityRound) -> None:
        before = {slot: self.current[slot] for slot, _ in round_.updates}
        apply_round(self.problem, self.current, round_)
        for slot, old in before.items():
            if self.current[slot] != old:
                self.moments[slot].append(ShardingChange(time, self.current[slot], Cause.PRIORITY))

    def _apply(self, number: int, visit: Visit) -> None:
        self.updates.append((number, make_update(self.problem, self.log, visit, self.current)))
        for position, slot, sharding, is_tied in changed_slots(self.problem, visit):
            if sharding == self.current[slot]:
                continue
            opens = self.current[slot] == NO_SHARDING and not (visit.step < 0 and position == 1)
            self._set(slot, ShardingChange(2 * number + 1, sharding, Cause.GROUP if is_tied else Cause.VISIT, position))
            for other, rank in self.problem.siblings.get(slot, ()) if opens else ():
                if self.current[other] == NO_SHARDING:
                    opened = self.problem.table.fully_open_like(sharding, rank)
                    self._set(other, ShardingChange(2 * number + 1, opened, Cause.SIBLING))

    def _set(self, slot: int, moment: ShardingChange) -> None:
        self.current[slot] = moment.sharding
        self.moments[slot].append(moment)
