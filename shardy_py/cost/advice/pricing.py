"""Judgement of shardings: bytes, time and memory, by solving and pricing; what was seen before is not priced again."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from attrs import field

from shardy_py.cost.estimates import Cost
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.session import Evaluation, Session
from shardy_py.cost.sweeps.comparison import Measure
from shardy_py.errors import OptionError, ShardyError
from shardy_py.propagation.solve import Solution
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.support.texts import format_bytes, format_seconds
from shardy_py.values import define, frozen

Shardings = Mapping[int, TensorSharding | None]
"""Slot to the sharding that it starts with."""


@frozen
class Figures:
    """Estimates of what a program costs with some shardings.

    Args:
        bytes: The bytes that one device sends.
        seconds: The time of a run; None without a machine.
        communication_seconds: How much of it is communication.
        peak_bytes: The peak memory of a device.
        flops: The operations of a device.
    """

    bytes: float
    seconds: float | None
    communication_seconds: float | None
    peak_bytes: float
    flops: float

    def __str__(self) -> str:
        time = [] if self.seconds is None else [f"{format_seconds(self.seconds)} of time"]
        sent, peak = format_bytes(round(self.bytes)), format_bytes(round(self.peak_bytes))
        return ", ".join([f"{sent} sent", *time, f"{peak} at the peak"])

    @classmethod
    def of(cls, cost: Cost) -> Figures:
        """Return the figures of a cost."""
        return cls(
            cost.communication_bytes.value or 0.0,
            cost.seconds.value,
            cost.communication_seconds.value,
            cost.peak_bytes.value or 0.0,
            cost.flops.value or 0.0,
        )


@frozen
class Goal:
    """Measure that is to become small, and the memory that bounds it.

    Args:
        measure: The measure.
        memory: The bytes that a device may use at most, or None.
    """

    measure: Measure
    memory: float | None = None

    def __str__(self) -> str:
        return {"time": "less time", "bytes": "fewer bytes sent", "memory": "less memory"}[self.measure]

    def excess(self, figures: Figures) -> float:
        """Return the bytes of the peak beyond the memory."""
        return 0.0 if self.memory is None else max(0.0, figures.peak_bytes - self.memory)

    def score(self, figures: Figures) -> tuple[float, ...]:
        """Return a key that is less for what is better: what fits comes first, ties go by the other measures."""
        values = {
            "time": (figures.seconds or 0.0, figures.bytes, figures.peak_bytes),
            "bytes": (figures.bytes, figures.seconds or 0.0, figures.peak_bytes),
            "memory": (figures.peak_bytes, figures.seconds or 0.0, figures.bytes),
        }
        return self.excess(figures), *values[self.measure]

    def is_better(self, new: Figures, old: Figures, *, by: float = 0.0) -> bool:
        """Return whether figures are better than others.

        Args:
            new: The figures.
            old: The others.
            by: The part of the measure by which they have to be better.
        """
        before, after = self.score(old), self.score(new)
        if before[0] or after[0]:
            return after < before
        return after[1] < before[1] * (1 - by) if by else after < before


@define(eq=False)
class Judge:
    """Prices shardings of one program.

    Attributes:
        session: The session.
        machine: The machine; None for no times.
        axes: The links of the machine that axes of the mesh run over.
        schedule: The order of ops.
        tried: How many different solutions were priced.
    """

    session: Session
    machine: Machine | None = None
    axes: AxisLinks | None = None
    schedule: ScheduleLike | None = None
    tried: int = 0
    _known: dict[bytes, Figures | None] = field(factory=dict, init=False)

    def solve(self, shardings: Shardings) -> Solution:
        """Return the solution that starts with some shardings."""
        return self.session.with_shardings(shardings).solve(self.schedule)

    def price(self, shardings: Shardings) -> Figures | None:
        """Return the figures of a solution that starts with some shardings; None where it has none.

        Raises:
            OptionError: the machine does not fit the program.
        """
        with no_garbage_collection():
            try:
                solution = self.solve(shardings)
            except ShardyError:
                return None
            key = array("l", solution.shardings).tobytes()
            if key not in self._known:
                self.tried += 1
                self._known[key] = self._price(solution)
            return self._known[key]

    def evaluate(self, shardings: Shardings) -> Evaluation:
        """Return the solution that starts with some shardings, with its cost."""
        return self.session.price(self.solve(shardings), self.machine, axes=self.axes)

    def _price(self, solution: Solution) -> Figures | None:
        try:
            return Figures.of(self.session.price(solution, self.machine, axes=self.axes).cost)
        except OptionError:
            raise
        except ShardyError:
            return None
