"""The memory of a plan: what lives at each op, as rows of the linear program.

Arguments, results, and tensors between ops live; so do the copies of resharded tensors at the ops that use them, and
between two such ops that share one, and partial results until their sum is scattered. Rows stand for points of time;
there are some from the start, and others where a solution has more memory than it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

from attrs import field

from shardy_py.plans.flows import TensorCopy, TensorFlows
from shardy_py.plans.model import PlanModel
from shardy_py.plans.solve import LinearProgram, Solved
from shardy_py.plans.state import donated_results
from shardy_py.values import define

_POINTS = 8
"""Number of points of time that have a row from the start."""
_ADDED = 4
"""Number of points of time that get a row after a solve."""
_TOLERANCE = 1e-6
_PENALTY = 1e6
"""The cost of `PlanMemory.unit` bytes beyond a limit, in units of the linear program.

A limit that is not met by the flows that were added first may be met by others, which the prices of rows show.
"""


@define(eq=False)
class PlanMemory:
    """The memory of a plan in a linear program.

    Attributes:
        model: The model.
        program: The linear program.
        choices: Node to the columns of its strategies.
        flows: The flows of the tensors.
        column: The column with the largest memory, in units of `unit` bytes.
        excess: The column with what it exceeds a limit by, which costs more than any plan may take.
        unit: The bytes of all tensors that live at some time.
    """

    model: PlanModel
    program: LinearProgram
    choices: Mapping[int, Sequence[int]]
    flows: Sequence[TensorFlows]
    column: int = -1
    excess: int = -1
    unit: float = 1.0
    _end: int = 0
    _living: list[tuple[int, int, int, float]] = field(factory=list)
    _partial: list[tuple[int, int, float]] = field(factory=list)
    _rows: dict[int, int] = field(factory=dict)
    _entered: list[int] = field(factory=list)

    @classmethod
    def of(
        cls,
        model: PlanModel,
        program: LinearProgram,
        choices: Mapping[int, Sequence[int]],
        flows: Sequence[TensorFlows],
    ) -> PlanMemory:
        """Add the memory at the largest points of time, by whole tensors, to a linear program."""
        memory = cls(model, program, choices, flows)
        memory._end = max((node.place for node in model.graph.nodes), default=0) + 1
        memory._add_living()
        memory.unit = max(1.0, sum(size for _, _, _, size in memory._living))
        memory.column = program.column(0.0, upper=inf)
        memory.excess = program.column(_PENALTY * program.unit, upper=inf)
        memory._entered = [len(tensor.copies) for tensor in flows]
        for time in _largest(memory._sums(dict.fromkeys(choices, 1.0), [])):
            memory._add_row(time)
        return memory

    def fits(self, solved: Solved) -> bool:
        """Return whether a solution meets the limit."""
        return float(solved.columns[self.excess]) <= _TOLERANCE

    def limit(self, size: float) -> None:
        """Let no device use more bytes."""
        self.program.upper[self.column] = size / self.unit

    def prices(self, solved: Solved) -> dict[int, float]:
        """Return the price of a byte at each point of time that has a row; it is at most zero."""
        return {time: float(solved.rows[row]) / self.unit for time, row in self._rows.items()}

    def enter_copies(self) -> None:
        """Enter the copies of flows that were added since the last time."""
        for number, tensor in enumerate(self.flows):
            for copy in tensor.copies[self._entered[number] :]:
                for time, row in self._rows.items():
                    self._enter(row, time, copy)
            self._entered[number] = len(tensor.copies)

    def largest(self, solved: Solved) -> float:
        """Return the bytes of a solution at its peak."""
        return max(self._over_time(solved))

    def add_exceeded(self, solved: Solved) -> bool:
        """Add rows of points of time at which a solution has more memory than it says; return whether there were."""
        size = float(solved.columns[self.column] + solved.columns[self.excess])
        limit, sums = self.unit * (size * (1 + _TOLERANCE) + _TOLERANCE), self._over_time(solved)
        exceeded = [time for time, total in enumerate(sums) if time not in self._rows and total > limit]
        for time in sorted(exceeded, key=lambda moment: (-sums[moment], moment))[:_ADDED]:
            self._add_row(time)
        return bool(exceeded)

    def _over_time(self, solved: Solved) -> list[float]:
        """Return the bytes of a solution at each point of time, from 0 to the end."""
        columns, shares, partial = solved.columns, {}, {}
        for leader, numbers in self.choices.items():
            chosen = columns[numbers]
            shares[leader] = float(chosen @ self._shares(leader))
            partial[leader] = float(chosen @ self._partial_shares(leader))
        copies = [copy for tensor in self.flows for copy in tensor.copies if copy.column < len(columns)]
        spans = [(*span, copy.size * float(columns[copy.column])) for copy in copies for span in copy.spans]
        sums = self._sums(shares, spans)
        for leader, place, size in self._partial:
            sums[place] += size * partial[leader]
        return sums

    def _sums(self, shares: Mapping[int, float], spans: Sequence[tuple[int, int, float]]) -> list[float]:
        """Return the bytes at each point of time, but for partial results.

        Args:
            shares: Node to the part of its results that a device has.
            spans: First and last point of time of what lives besides, and its bytes.
        """
        changes = [0.0] * (self._end + 2)
        living = [(since, until, size * shares[leader]) for leader, since, until, size in self._living]
        for since, until, size in (*living, *spans):
            changes[max(0, since)] += size
            changes[until + 1] -= size
        return list(accumulate(changes[:-1]))

    def _add_living(self) -> None:
        graph, prices = self.model.graph, self.model.prices
        last = {root: max(graph.nodes[use.node].place for use in uses) for root, uses in graph.uses.items()}
        last.update({graph.views[value][0]: self._end for value, _ in graph.returned() if value in graph.views})
        donated = donated_results(graph)
        for node in graph.nodes:
            if node.op is not None and node.op.id not in prices.kernels and node.is_elementwise:
                continue
            leader = self.model.leader(node.number)
            # An elementwise op may write over an operand: what it makes counts behind it.
            since = node.place + (node.op is not None and node.is_elementwise)
            for slot in node.results:
                if slot >= 0 and graph.shape(slot) and slot not in donated:
                    until = self._end if node.op is None else last.get(slot, node.place)
                    self._living.append((leader, since, until, graph.bytes(slot)))
            if node.op is not None and not node.is_elementwise:
                self._partial.append((leader, node.place, graph.bytes(node.results[0])))

    def _add_row(self, time: int) -> None:
        sizes: dict[int, float] = defaultdict(float)
        partial: dict[int, float] = defaultdict(float)
        for leader, since, until, size in self._living:
            if since <= time <= until:
                sizes[leader] += size
        for leader, place, size in self._partial:
            if place == time:
                partial[leader] += size
        row = self._rows[time] = self.program.row(-inf, 0.0)
        for column in (self.column, self.excess):
            self.program.enter(row, column, -1.0)
        for leader in dict.fromkeys([*sizes, *partial]):
            parts = sizes[leader] * self._shares(leader) + partial[leader] * self._partial_shares(leader)
            for column, part in zip(self.choices[leader], (parts / self.unit).tolist(), strict=True):
                self.program.enter(row, column, part)
        for number, tensor in enumerate(self.flows):
            for copy in tensor.copies[: self._entered[number]]:
                self._enter(row, time, copy)

    def _enter(self, row: int, time: int, copy: TensorCopy) -> None:
        count = sum(since <= time <= until for since, until in copy.spans)
        if count:
            self.program.enter(row, copy.column, count * copy.size / self.unit)

    def _shares(self, leader: int) -> Any:
        """Return the part of a tensor that a device has by each strategy."""
        return 1 / self.model.prices.shard_counts(self.model.strategies[leader].outs)

    def _partial_shares(self, leader: int) -> Any:
        """Return by how much the part before a sum is scattered is larger, by each strategy."""
        options = self.model.strategies[leader]
        return 1 / self.model.prices.shard_counts(options.bases) - self._shares(leader)


def _largest(sums: Sequence[float]) -> list[int]:
    """Return the points of time with the most bytes."""
    return sorted(range(len(sums)), key=lambda moment: (-sums[moment], moment))[:_POINTS]
