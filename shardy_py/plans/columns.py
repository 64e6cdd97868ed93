"""The columns and rows of a plan: a choice per strategy, flows of tensors, the memory at some points of time."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Any

from attrs import field

from shardy_py.plans.flows import TensorFlows
from shardy_py.plans.model import Choice, PlanModel
from shardy_py.plans.solve import LinearProgram, Solved, numpy
from shardy_py.plans.state import donated_results
from shardy_py.plans.strategies import numbers_of, row_of
from shardy_py.values import define

_POINTS = 8
"""Number of points of time at which memory is counted."""
_TOLERANCE = 1e-6
_UNITS = 100
"""The least time of all kernels, in units of the linear program."""


@define(eq=False)
class PlanSolution:
    """A choice, and the seconds that no choice can be below."""

    choice: Choice
    bound: float


@define(eq=False)
class PlanColumns:
    """The linear program of a model.

    Attributes:
        model: The model.
        program: The linear program.
        memory: The column with the largest memory, in units of `memory_unit` bytes.
        memory_unit: The bytes of all arguments and results.
        choices: Node to the columns of its strategies.
    """

    model: PlanModel
    program: LinearProgram = field(factory=LinearProgram)
    memory: int = -1
    memory_unit: float = 1.0
    choices: dict[int, list[int]] = field(factory=dict)
    _flows: list[TensorFlows] = field(factory=list)

    @classmethod
    def of(cls, model: PlanModel) -> PlanColumns:
        """Return the columns of a model."""
        columns = cls(model)
        least = sum(float(seconds.min(initial=inf)) for seconds in model.seconds.values())
        if 0 < least < inf:
            columns.program.unit = least / _UNITS
        columns._add_choices()
        for tensor in model.tensors:
            uses = [(columns._grouped(use.leader, use.needs), use) for use in tensor.uses]
            producer = columns._grouped(tensor.leader, tensor.gives)
            columns._flows.append(TensorFlows.of(columns.program, model.times, tensor, producer, uses))
        columns._add_equal()
        columns._add_memory()
        return columns

    def solve(self) -> PlanSolution | None:
        """Return the cheapest choice; None where the rows contradict each other."""
        solved = self._relaxed()
        if solved is None:
            return None
        bound = solved.bound
        if not self.is_integral(solved):
            integral = self.program.whole()
            if integral is None:
                return None
            solved, bound = integral, max(bound, integral.bound)
        return PlanSolution(self.choice(solved), bound)

    def forbid(self, choice: Choice) -> None:
        """Forbid the placements of the arguments of a choice, all together."""
        leaders = [number for number in self.choices if self.model.graph.nodes[number].op is None]
        row = self.program.row(-inf, len(leaders) - 1.0)
        for number in leaders:
            is_out = (self.model.strategies[number].outs == row_of(choice[number].out)).all(axis=1)
            for position in numpy().flatnonzero(is_out).tolist():
                self.program.enter(row, self.choices[number][position], 1.0)

    def limit_memory(self, size: float) -> None:
        """Let no device use more bytes."""
        self.program.upper[self.memory] = size / self.memory_unit

    def least_memory(self) -> tuple[Choice, float] | None:
        """Return the choice with the smallest memory, and that memory in bytes."""
        costs, self.program.costs = self.program.costs, [0.0] * len(self.program.costs)
        # Any flow is free here, so the first ones are enough.
        self.program.costs[self.memory] = self.program.unit
        solved = self.program.relaxed()
        self.program.costs = costs
        if solved is None:
            return None
        return self.choice(solved), solved.seconds / self.program.unit * self.memory_unit

    def is_integral(self, solved: Solved) -> bool:
        """Return whether a solution chooses one strategy of each node."""
        chosen = solved.columns[numpy().array(self.program.is_choice)]
        return bool(numpy().abs(chosen - chosen.round()).max(initial=0.0) <= _TOLERANCE)

    def choice(self, solved: Solved) -> Choice:
        """Return the strategies that a solution chooses, of fractions the largest."""
        return self.model.choice(
            {
                number: max(range(len(columns)), key=lambda position: solved.columns[columns[position]])
                for number, columns in self.choices.items()
            }
        )

    def _relaxed(self) -> Solved | None:
        """Return the best columns of all flows, also of those that were not added."""
        while True:
            solved = self.program.relaxed()
            if solved is None or not sum(flows.add_cheaper(solved.rows) for flows in self._flows):
                return solved

    def _add_choices(self) -> None:
        for number, seconds in self.model.seconds.items():
            columns = self.choices[number] = [self.program.column(float(cost), is_choice=True) for cost in seconds]
            row = self.program.row(1.0, 1.0)
            for column in columns:
                self.program.enter(row, column, 1.0)

    def _grouped(self, leader: int, placements: Any) -> dict[int, list[int]]:
        """Return the columns of a node's choices by placement."""
        groups: dict[int, list[int]] = defaultdict(list)
        for column, placement in zip(self.choices[leader], placements.tolist(), strict=True):
            groups[placement].append(column)
        return groups

    def _add_equal(self) -> None:
        for first, second in self.model.equal:
            rank = len(self.model.graph.shape(self.model.graph.nodes[first].results[0]))
            groups = [
                self._grouped(node, numbers_of(self.model.strategies[node].outs, rank)) for node in (first, second)
            ]
            for placement in dict.fromkeys([*groups[0], *groups[1]]):
                row = self.program.row(0.0, 0.0)
                for column in groups[0].get(placement, []):
                    self.program.enter(row, column, 1.0)
                for column in groups[1].get(placement, []):
                    self.program.enter(row, column, -1.0)

    def _add_memory(self) -> None:
        """Add rows for the bytes of what lives at some points of time: arguments, results, and tensors between."""
        graph, prices = self.model.graph, self.model.prices
        end = max((node.place for node in graph.nodes), default=0) + 1
        last = {root: max(graph.nodes[use.node].place for use in uses) for root, uses in graph.uses.items()}
        last.update({graph.views[value][0]: end for value, _ in graph.returned() if value in graph.views})
        living: list[tuple[int, int, int, float]] = []
        donated = donated_results(graph)
        for node in graph.nodes:
            if node.op is not None and node.op.id not in prices.kernels and node.is_elementwise:
                continue
            # An elementwise op may write over an operand: what it makes counts behind it.
            since = node.place + (node.op is not None and node.is_elementwise)
            for slot in node.results:
                if slot >= 0 and graph.shape(slot) and slot not in donated:
                    until = end if node.op is None else last.get(slot, node.place)
                    living.append((self.model.leader(node.number), since, until, graph.bytes(slot)))
        self.memory_unit = max(1.0, sum(size for _, _, _, size in living))
        self.memory = self.program.column(0.0, upper=inf)
        times = sorted({node.place for node in graph.nodes if node.op is not None} | {end})
        total = _sums_over_time(living, end)
        for time in sorted(times, key=lambda moment: (-total[moment], moment))[:_POINTS]:
            sizes: dict[int, float] = defaultdict(float)
            for leader, since, until, size in living:
                if since <= time <= until:
                    sizes[leader] += size
            row = self.program.row(-inf, 0.0)
            self.program.enter(row, self.memory, -1.0)
            for leader, size in sizes.items():
                parts = size / prices.shard_counts(self.model.strategies[leader].outs) / self.memory_unit
                for column, part in zip(self.choices[leader], parts.tolist(), strict=True):
                    self.program.enter(row, column, part)


def _sums_over_time(living: list[tuple[int, int, int, float]], end: int) -> list[float]:
    """Return the bytes that live at each point of time, from 0 to the end."""
    changes = [0.0] * (end + 2)
    for _, since, until, size in living:
        changes[max(0, since)] += size
        changes[until + 1] -= size
    total, sums = 0.0, []
    for change in changes:
        total += change
        sums.append(total)
    return sums
