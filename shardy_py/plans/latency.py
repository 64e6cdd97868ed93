"""Latencies of all-reduces that no compiler combines, as rows of a plan: each needs the result of the one before.

Of nodes along one path of data flow each depends on the one before, so that no two of their all-reduces become one:
there are at least as many latencies as nodes on it. All-reduces of different element types are never combined: there
are paths for each type. The other count of latencies, by bytes, is a bound of its own (see `prices`): of both the
larger one counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from attrs import field

from shardy_py.plans.columns import PlanColumns, PlanSolution
from shardy_py.plans.graph import PlanGraph
from shardy_py.plans.solve import Solved
from shardy_py.values import define

_FLOATS = {"bf16", "f16", "f32"}
_LONGER = 1e-4
"""The units of the linear program by which a path has to be longer than what is counted."""
_PATHS = 12
"""Number of times that paths are added."""


def solve_with_latency(columns: PlanColumns) -> PlanSolution | None:
    """Return the cheapest choice with the latencies along paths, and the bound; None where rows contradict.

    The columns get rows for the longest paths of what was solved, until no path is longer than what is counted. Where
    choices then are fractions, the prices of these rows become costs of the choices. All flows that a plan may have
    are among the columns, as in those that bounds leave.
    """
    rows, solved = _LatencyRows.of(columns), columns.program.relaxed()
    for _ in range(_PATHS):
        if solved is None or not rows.add_longest(solved):
            break
        solved = columns.program.relaxed()
    if solved is None or not columns.fits(solved):
        return None
    bound = solved.bound
    if not columns.is_integral(solved):
        rows.charge(solved)
        solved = columns.program.relaxed() or solved
    return PlanSolution(columns.choice(solved), bound)


@define(eq=False)
class _LatencyRows:
    """The rows of paths: for each type of elements how much longer the longest path is than what bytes count."""

    columns: PlanColumns
    nodes: dict[str, list[int]] = field(factory=lambda: defaultdict(list))
    longer: dict[str, int] = field(factory=dict)
    counted: dict[str, int] = field(factory=dict)
    paths: list[tuple[int, str, list[int]]] = field(factory=list)

    @classmethod
    def of(cls, columns: PlanColumns) -> _LatencyRows:
        rows = cls(columns)
        for node in columns.model.ties.leaders:
            rows.nodes[rows._type(node)].append(node)
        return rows

    def charge(self, solved: Solved) -> None:
        """Let the choices along each path pay the price of its row, and the row hold nothing."""
        program, model = self.columns.program, self.columns.model
        for row, name, path in self.paths:
            price = float(solved.rows[row]) / program.unit
            program.costs[self.counted[name]] -= price * program.unit
            for leader, count in self._counts(path):
                latencies = model.strategies[leader].latency * count * price
                for column, seconds in zip(self.columns.choices[leader], latencies.tolist(), strict=True):
                    program.costs[column] += seconds
        for column in self.longer.values():
            program.costs[column] = 0.0

    def add_longest(self, solved: Solved) -> bool:
        """Add the longest path of each type in a solution; return whether one is longer than what is counted."""
        model, columns, unit = self.columns.model, self.columns, self.columns.program.unit
        latencies = {
            leader: float(solved.columns[chosen] @ model.strategies[leader].latency)
            for leader, chosen in columns.choices.items()
        }
        is_longer = False
        for name, nodes in self.nodes.items():
            seconds = {node: latencies[model.ties.leaders[node]] for node in nodes}
            path = longest_path(model.graph, seconds)
            known = (solved.columns[item[name]] * unit for item in (self.longer, self.counted) if name in item)
            if sum(seconds[node] for node in path) > sum(known) + _LONGER * unit:
                self._add(name, path)
                is_longer = True
        return is_longer

    def _type(self, node: int) -> str:
        graph, profile = self.columns.model.graph, self.columns.model.prices.profile
        element_type = graph.element_type(graph.nodes[node].results[0])
        return "f32" if profile.widens_bfloat16 and element_type in _FLOATS else element_type

    def _add(self, name: str, path: list[int]) -> None:
        model, program = self.columns.model, self.columns.program
        if name not in self.longer:
            self.longer[name] = program.column(program.unit, upper=inf)
            self.counted[name] = program.column(0.0, upper=inf)
            row = program.row(0.0, 0.0)
            program.enter(row, self.counted[name], -1.0)
            for leader, count in self._counts(self.nodes[name]):
                self._enter(row, leader, model.strategies[leader].counted * count)
        row = program.row(0.0, inf)
        self.paths.append((row, name, path))
        program.enter(row, self.longer[name], 1.0)
        program.enter(row, self.counted[name], 1.0)
        for leader, count in self._counts(path):
            self._enter(row, leader, -model.strategies[leader].latency * count)

    def _counts(self, nodes: Iterable[int]) -> Iterable[tuple[int, int]]:
        """Return the nodes that lead, each with the number of nodes that have its choice."""
        return Counter(self.columns.model.ties.leaders[node] for node in nodes).items()

    def _enter(self, row: int, leader: int, seconds: Any) -> None:
        for column, value in zip(self.columns.choices[leader], seconds.tolist(), strict=True):
            if value:
                self.columns.program.enter(row, column, value / self.columns.program.unit)


def longest_path(graph: PlanGraph, latencies: Mapping[int, float]) -> list[int]:
    """Return the nodes that have a latency along the path of data flow with the longest latencies."""
    lengths: list[float] = []
    before: list[int | None] = []
    for node in graph.nodes:
        length, previous = 0.0, None
        for number in node.live:
            producer = graph.node_of[graph.views[node.operands[number]][0]]
            if lengths[producer] > length:
                length, previous = lengths[producer], producer
        lengths.append(length + latencies.get(node.number, 0.0))
        before.append(previous)
    node_number = max(range(len(lengths)), key=lambda number: (lengths[number], -number), default=None)
    path = []
    while node_number is not None:
        if latencies.get(node_number, -inf) > 0:
            path.append(node_number)
        node_number = before[node_number]
    return path
