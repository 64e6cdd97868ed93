"""The columns and rows of a plan: a choice per strategy, a flow per resharding, the memory at some points of time."""

from __future__ import annotations

from collections import defaultdict
from math import inf

from attrs import field

from shardy_py.plans.graph import NodeUse, Placement, PlanGraph, PlanNode
from shardy_py.plans.prices import Prices
from shardy_py.plans.solve import LinearProgram, Solved
from shardy_py.plans.strategies import PlanStrategy, needed, strategies, through
from shardy_py.values import define

Choice = dict[int, PlanStrategy]
"""PlanNode that has its own choice to the strategy that was chosen."""

_SLICES = 1e-4
"""The part of the time to read an argument that is added, so that of equal plans that with small arguments wins."""
_POINTS = 8
"""Number of points of time at which memory is counted."""


@define(eq=False)
class PlanColumns:
    """The linear program of a graph under a price list.

    Attributes:
        graph: The graph.
        prices: The prices.
        program: The linear program.
        memory: The column with the largest memory, in units of `memory_unit` bytes.
        memory_unit: The bytes of all arguments and results.
        slack: The most that the preference for small arguments adds to a plan, in seconds.
    """

    graph: PlanGraph
    prices: Prices
    program: LinearProgram = field(factory=LinearProgram)
    memory: int = -1
    memory_unit: float = 1.0
    slack: float = 0.0
    _strategies: dict[int, tuple[PlanStrategy, ...]] = field(factory=dict)
    _choices: dict[int, list[int]] = field(factory=dict)

    @classmethod
    def of(cls, graph: PlanGraph, prices: Prices) -> PlanColumns:
        """Return the columns of a graph."""
        columns = cls(graph, prices)
        columns._add_choices()
        for root, uses in graph.uses.items():
            columns._add_flows(root, uses)
        columns._add_memory()
        return columns

    def tie(self, first: int, second: int) -> None:
        """Let two nodes have results of the same placement."""
        first, second = self.graph.head(first), self.graph.head(second)
        if first == second:
            return
        groups = self._by_out(first), self._by_out(second)
        for placement in dict.fromkeys([*groups[0], *groups[1]]):
            entries = [(column, 1.0) for column in groups[0].get(placement, [])]
            entries += [(column, -1.0) for column in groups[1].get(placement, [])]
            self.program.row(entries, 0.0, 0.0)

    def fix(self, number: int, placement: Placement) -> None:
        """Let a node have results of one placement."""
        for column, strategy in zip(self._choices[number], self._strategies[number], strict=True):
            if strategy.out != placement:
                self.program.upper[column] = 0.0

    def forbid(self, choice: Choice) -> None:
        """Forbid the placements of the arguments of a choice, all together."""
        entries = [
            (column, 1.0)
            for number, chosen in choice.items()
            if self.graph.nodes[number].op is None
            for column, strategy in zip(self._choices[number], self._strategies[number], strict=True)
            if strategy.out == chosen.out
        ]
        self.program.row(entries, -inf, len(entries) - 1.0)

    def limit_memory(self, size: float) -> None:
        """Let no device use more bytes."""
        self.program.upper[self.memory] = size / self.memory_unit

    def least_memory(self) -> Solved | None:
        """Return the choice with the smallest memory; its bound is that memory in bytes."""
        costs = [0.0] * len(self.program.costs)
        costs[self.memory] = self.memory_unit * 1e-6
        solved = self.program.solve(costs)
        return None if solved is None else Solved(solved.columns, solved.bound * 1e6)

    def choice(self, solved: Solved) -> Choice:
        """Return the strategies of a solution."""
        return {
            number: self._strategies[number][
                max(range(len(columns)), key=lambda position: solved.columns[columns[position]])
            ]
            for number, columns in self._choices.items()
        }

    def _add_choices(self) -> None:
        graph, prices = self.graph, self.prices
        shared, replicated = self._kernels_of_followers()
        devices = prices.shards((0,) * len(prices.axes))
        for node in graph.nodes:
            if graph.head(node.number) != node.number:
                continue
            options = self._strategies[node.number] = strategies(graph, node, prices)
            columns = self._choices[node.number] = []
            size = graph.bytes(node.results[0]) / prices.machine.memory_bandwidth * _SLICES if node.op is None else 0.0
            self.slack += size
            for strategy in options:
                parts = prices.shards(strategy.out)
                seconds = strategy.seconds + shared[node.number] / parts + replicated[node.number] / devices
                columns.append(self.program.column(seconds + size / parts, is_choice=True))
            self.program.row([(column, 1.0) for column in columns], 1.0, 1.0)

    def _kernels_of_followers(self) -> tuple[dict[int, float], dict[int, float]]:
        """Return the seconds of kernels that a node's choice divides, and of those that all devices share, by node."""
        shared: dict[int, float] = defaultdict(float)
        replicated: dict[int, float] = defaultdict(float)
        kernels, graph = self.prices.kernels, self.graph
        for node in graph.nodes:
            head = graph.head(node.number)
            if node.op is not None and head != node.number and node.op.id in kernels:
                shared[head] += kernels[node.op.id].seconds or 0.0
        for op, root, dims in graph.view_ops:
            if op.id in kernels:
                node = graph.nodes[graph.node_of[root]]
                target = replicated if node.op is None or None in dims else shared
                target[graph.head(node.number)] += kernels[op.id].seconds or 0.0
        return shared, replicated

    def _by_out(self, number: int) -> dict[Placement, list[int]]:
        groups: dict[Placement, list[int]] = defaultdict(list)
        for column, strategy in zip(self._choices[number], self._strategies[number], strict=True):
            groups[strategy.out].append(column)
        return groups

    def _add_flows(self, root: int, uses: list[NodeUse]) -> None:
        """Add a flow from each placement of a tensor to each that a use needs; equal ones of several uses cost once."""
        producers = self._by_out(self.graph.head(self.graph.node_of[root]))
        sent: dict[tuple[Placement, Placement], list[tuple[int, float]]] = defaultdict(list)
        for use in uses:
            consumers: dict[Placement, list[int]] = defaultdict(list)
            head = self.graph.head(use.node)
            for column, strategy in zip(self._choices[head], self._strategies[head], strict=True):
                consumers[through(need(self.graph.nodes[use.node], use.operand, strategy, head), use.dims)].append(
                    column
                )
            flows = {(have, want): self.program.column(0.0) for have in producers for want in consumers}
            for have, columns in producers.items():
                row = [(flows[have, want], 1.0) for want in consumers] + [(column, -1.0) for column in columns]
                self.program.row(_merged(row), 0.0, 0.0)
            for want, columns in consumers.items():
                row = [(flows[have, want], 1.0) for have in producers] + [(column, -1.0) for column in columns]
                self.program.row(_merged(row), 0.0, 0.0)
            for pair, flow in flows.items():
                sent[pair].append((flow, self.prices.reshard_seconds(*pair, use.bytes)))
        for several in sent.values():
            least = min(seconds for _, seconds in several)
            if len(several) == 1:
                self.program.costs[several[0][0]] += least
            elif least > 0:
                once = self.program.column(least)
                for flow, _ in several:
                    self.program.row([(once, 1.0), (flow, -1.0)], 0.0, inf)

    def _add_memory(self) -> None:
        """Add rows for the bytes of what lives at some points of time: arguments, results, and tensors between."""
        graph, kernels = self.graph, self.prices.kernels
        end = max((node.place for node in graph.nodes), default=0) + 1
        last = {root: max(graph.nodes[use.node].place for use in uses) for root, uses in graph.uses.items()}
        last.update({graph.views[value][0]: end for value, _ in graph.returned() if value in graph.views})
        living: list[tuple[int, int, int, float]] = []
        for node in graph.nodes:
            if node.op is not None and node.op.id not in kernels and node.is_elementwise:
                continue
            for slot in node.results:
                if slot >= 0 and graph.shape(slot):
                    until = end if node.op is None else last.get(slot, node.place)
                    living.append((graph.head(node.number), node.place, until, graph.bytes(slot)))
        self.memory_unit = max(1.0, sum(size for _, _, _, size in living))
        self.memory = self.program.column(0.0, upper=inf)
        times = sorted({node.place for node in graph.nodes if node.op is not None} | {end})
        total = {time: sum(size for _, since, until, size in living if since <= time <= until) for time in times}
        for time in sorted(times, key=lambda moment: (-total[moment], moment))[:_POINTS]:
            entries: list[tuple[int, float]] = [(self.memory, -1.0)]
            for head, since, until, size in living:
                if since <= time <= until:
                    for column, strategy in zip(self._choices[head], self._strategies[head], strict=True):
                        entries.append((column, size / self.prices.shards(strategy.out) / self.memory_unit))
            self.program.row(_merged(entries), -inf, 0.0)


def need(node: PlanNode, operand: int, strategy: PlanStrategy, head: int) -> Placement:
    """Return the placement that a node needs of an operand; a node that follows needs that of its results."""
    if node.number != head or node.rule is None:
        return strategy.out
    return needed(node.rule, operand, strategy.factors)


def _merged(entries: list[tuple[int, float]]) -> list[tuple[int, float]]:
    merged: dict[int, float] = defaultdict(float)
    for column, value in entries:
        merged[column] += value
    return list(merged.items())
