"""The worklist of a level: the steps that wait for a visit, the one put back last first."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field

from shardy_py.propagation.step_outcomes import Directions, Outcome
from shardy_py.propagation.steps.factors import Strategy
from shardy_py.values import define


@define
class Worklist:
    """The steps that wait for a visit.

    All steps from ``cursor`` on have not had their first turn. They are not put on the stack, but wait for that turn;
    those that have nothing to do are passed over.

    Attributes:
        waiting: Whether a step is to be visited.
        level: The level.
        strategy: The strategy.
        stack: The steps that were put back after their first turn, the next one last.
        cursor: The step after the last one that had its first turn.
    """

    waiting: bytearray
    level: int
    strategy: Strategy
    stack: list[int] = field(factory=list)
    cursor: int = 0

    def put_back(self, steps: Iterable[int], visited: int, active: bytearray) -> None:
        """Put active steps back that are not waiting, except the step just visited."""
        for step in steps:
            if active[step] and not self.waiting[step] and step != visited:
                self.waiting[step] = 1
                if step < self.cursor:
                    self.stack.append(step)

    def touch(self, steps: Iterable[int], active: bytearray, again: list[int]) -> None:
        """Mark steps that see a change and are not put back: they wait for their first turn, or for the next level."""
        for step in steps:
            again.append(step)
            if step >= self.cursor:
                self.waiting[step] = active[step]


@define
class LevelStart:
    """State at the start of a level for the last user priority.

    Attributes:
        active: Whether a step has directions.
        directions: Class to its directions.
        memos: Class to the outcomes that are known.
        current: Slot to sharding id.
        num_touched: The number of steps that had seen a change.
    """

    active: bytearray
    directions: list[Directions]
    memos: list[dict[tuple[int, ...], Outcome]]
    current: list[int]
    num_touched: int
