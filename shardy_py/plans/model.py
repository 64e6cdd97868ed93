"""The model of a plan: nodes with the costs of their strategies, and tensors that flow between them.

A plan costs the strategies of its nodes and, for each tensor, the resharding from the placement that its producer gives
to those that its uses need; uses that need the same placement share one resharding.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from attrs import evolve, field

from shardy_py.plans.graph import NodeUse, Placement, PlanGraph, PlanNode
from shardy_py.plans.prices import Prices
from shardy_py.plans.reshards import ReshardTimes
from shardy_py.plans.strategies import (
    PlanStrategy,
    Strategies,
    all_needed,
    all_through,
    needed,
    numbers_of,
    row_of,
)
from shardy_py.plans.ties import PlanTies
from shardy_py.plans.view_kernels import KernelShare, ViewKernels
from shardy_py.values import define

Choice = dict[int, PlanStrategy]
"""PlanNode that has its own choice to the strategy that was chosen."""

Allowed = Callable[[PlanNode, Placement], bool]
"""A condition on the placement of an argument."""

_SLICES = 1e-4
"""The part of the time to read an argument that is added, so that of equal plans that with small arguments wins."""


@define(eq=False)
class TensorUse:
    """One use of a tensor.

    Attributes:
        leader: The node whose choice decides.
        needs: The placement that each of its strategies needs.
        size: The bytes that are sent.
        spans: For each of the equal tensors the first and the last op that uses it so.
        flows: The pairs of placements that a plan may have; None for any.
    """

    leader: int
    needs: Any
    size: float
    spans: list[tuple[int, int]]
    flows: frozenset[tuple[int, int]] | None = None


@define(eq=False)
class PlanTensor:
    """A tensor: its producer, the placement that each strategy of that gives, and its uses.

    Placements are their numbers, see `numbers_of`. `count` is the number of equal tensors that it stands for, those of
    each run of a loop too, and `kernels` the seconds of the kernels of views between one of them and its uses.
    """

    rank: int
    count: float
    leader: int
    gives: Any
    uses: list[TensorUse]
    kernels: float = 0.0


@define(eq=False)
class PlanModel:
    """A graph under a price list.

    Attributes:
        graph: The graph.
        prices: The prices.
        ties: Which nodes share a choice.
        times: The times of resharding.
        strategies: Node to its strategies.
        seconds: Node to the costs of these.
        tensors: The tensors.
        equal: Pairs of nodes whose results have the same placement.
        slack: The most that the preference for small arguments adds to a plan, in seconds.
    """

    graph: PlanGraph
    prices: Prices
    ties: PlanTies
    times: ReshardTimes
    strategies: dict[int, Strategies] = field(factory=dict)
    seconds: dict[int, Any] = field(factory=dict)
    tensors: list[PlanTensor] = field(factory=list)
    equal: list[tuple[int, int]] = field(factory=list)
    slack: float = 0.0

    @classmethod
    def of(
        cls,
        graph: PlanGraph,
        prices: Prices,
        ties: PlanTies,
        fixed: Mapping[int, Placement],
        equal: Iterable[tuple[int, int]],
    ) -> PlanModel:
        """Return the model of a graph.

        Args:
            graph: The graph.
            prices: The prices.
            ties: Which nodes share a choice.
            fixed: Node to the placement that it has to keep.
            equal: Pairs of nodes whose results have the same placement.
        """
        model = cls(graph, prices, ties, ReshardTimes(prices))
        model._add_strategies(fixed)
        views = model._price()
        model._add_tensors(views)
        pairs = dict.fromkeys((model.leader(first), model.leader(second)) for first, second in equal)
        model.equal = [(first, second) for first, second in pairs if first != second]
        return model

    def with_prices(self, prices: Prices) -> PlanModel:
        """Return the model under another price list."""
        model = evolve(self, prices=prices, times=ReshardTimes(prices), strategies=dict(self.strategies), seconds={})
        model._price()
        return model

    def keep(self, rows: Mapping[int, Any]) -> PlanModel:
        """Return the model with some strategies only: node to the rows of those that are kept."""
        return evolve(
            self,
            strategies={leader: self.strategies[leader].take(numbers) for leader, numbers in rows.items()},
            seconds={leader: self.seconds[leader][numbers] for leader, numbers in rows.items()},
            tensors=[
                evolve(
                    tensor,
                    gives=tensor.gives[rows[tensor.leader]],
                    uses=[evolve(use, needs=use.needs[rows[use.leader]]) for use in tensor.uses],
                )
                for tensor in self.tensors
            ],
        )

    def allow(self, allowed: Allowed) -> PlanModel:
        """Return the model with the placements of arguments that are allowed; an argument without any is left free."""
        rows = {}
        for leader, options in self.strategies.items():
            node, every = self.graph.nodes[leader], range(len(options))
            numbers = [number for number in every if node.op is not None or allowed(node, options[number].out)]
            rows[leader] = numbers or list(every)
        return self.keep(rows)

    def leader(self, number: int) -> int:
        """Return the node whose choice a node has."""
        return self.ties.leaders[self.graph.head(number)]

    def choice(self, numbers: Mapping[int, int]) -> Choice:
        """Return the strategies of all nodes from their numbers at the nodes that lead."""
        return {node: self.strategies[leader][numbers[leader]] for node, leader in self.ties.leaders.items()}

    def _add_strategies(self, fixed: Mapping[int, Placement]) -> None:
        fixed_placements = {self.leader(number): placement for number, placement in fixed.items()}
        for number in self.ties.counts:
            options = Strategies.of(self.graph, self.graph.nodes[number], self.prices)
            if number in fixed_placements:
                options = options.take((options.outs == row_of(fixed_placements[number])).all(axis=1))
            self.strategies[number] = options

    def _price(self) -> ViewKernels:
        views, prices = ViewKernels.of(self.graph, self.prices), self.prices
        (shared, rest), shares = self._kernels_of_followers(views), self._kernels_of_views(views)
        self.slack = 0.0
        for number, count in self.ties.counts.items():
            node = self.graph.nodes[number]
            options = self.strategies[number] = self.strategies[number].priced(self.graph, node, prices)
            size = 0.0
            if node.op is None:
                size = self.graph.bytes(node.results[0]) * count / prices.machine.memory_bandwidth * _SLICES
            self.slack += size
            shards = prices.shard_counts(options.outs)
            seconds = options.seconds * count + rest[number] / prices.devices + (shared[number] + size) / shards
            for (user, operand, share), kernel in shares[number].items():
                needs = all_needs(self.graph.nodes[user], operand, options, number)
                seconds = seconds + views.all_seconds(share, kernel, needs)
            self.seconds[number] = seconds
        return views

    def _kernels_of_followers(self, views: ViewKernels) -> tuple[dict[int, float], dict[int, float]]:
        """Return the seconds of kernels of nodes that follow, and of returned views.

        A node's choice divides the first; all devices divide the second.
        """
        shared: dict[int, float] = defaultdict(float)
        rest: dict[int, float] = defaultdict(float)
        kernels, graph = self.prices.kernels, self.graph
        for node in graph.nodes:
            if node.op is not None and graph.head(node.number) != node.number and node.op.id in kernels:
                seconds, part = kernels[node.op.id].seconds or 0.0, self.prices.part(graph, node)
                shared[self.leader(node.number)] += seconds * part
                rest[self.leader(node.number)] += seconds * (1 - part)
        for number, seconds in views.returned.items():
            shared[self.leader(number)] += seconds
        return shared, rest

    def _kernels_of_views(self, views: ViewKernels) -> dict[int, dict[tuple[int, int, KernelShare], float]]:
        """Return the seconds of kernels of views by the node whose choice decides.

        Each has an example of the use, and the share. Uses that pay by the same placement are one.
        """
        shares: dict[int, dict[tuple[int, int, KernelShare], float]] = defaultdict(lambda: defaultdict(float))
        examples: dict[tuple[int, int, KernelShare], int] = {}
        for (number, operand), parts in views.shares.items():
            if self.graph.nodes[number].op is None:
                continue
            leader, is_follower = self.leader(number), self.graph.head(number) != number
            for share, seconds in parts:
                key = (leader, -1 if is_follower else operand, share)
                user = examples.setdefault(key, number if is_follower else leader)
                shares[leader][user, operand if not is_follower else 0, share] += seconds
        return shares

    def _add_tensors(self, views: ViewKernels) -> None:
        """Add all tensors; those of tied nodes with equal uses are one."""
        counts: Counter[Hashable] = Counter()
        examples: dict[Hashable, tuple[int, dict[Hashable, tuple[int, NodeUse]]]] = {}
        spans: dict[Hashable, dict[Hashable, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for root, uses in self.graph.uses.items():
            producer = self.leader(self.graph.node_of[root])
            distinct: dict[Hashable, tuple[int, NodeUse]] = {}
            places: dict[Hashable, list[int]] = defaultdict(list)
            for use in uses:
                leader, is_follower = self.leader(use.node), self.graph.head(use.node) != use.node
                how: Hashable = (leader, -1 if is_follower else use.operand, use.dims, use.bytes)
                distinct.setdefault(how, (leader, use))
                places[how].append(self.graph.nodes[use.node].place)
            key = (producer, len(self.graph.shape(root)), frozenset(distinct), self._runs(root))
            counts[key] += 1
            examples.setdefault(key, (root, distinct))
            for how, known in places.items():
                spans[key][how].append((min(known), max(known)))
        for example, count in counts.items():
            root, tied_uses = examples[example]
            rank, producer = len(self.graph.shape(root)), self.leader(self.graph.node_of[root])
            gives = numbers_of(self.strategies[producer].outs, rank)
            uses_ = [
                TensorUse(leader, self._needs(leader, use, rank), use.bytes, spans[example][how])
                for how, (leader, use) in tied_uses.items()
            ]
            runs = self._runs(root)
            kernels = sum(views.divided_seconds(use.node, use.operand) for use in self.graph.uses[root])
            kernels = kernels / runs if runs else 0.0
            self.tensors.append(PlanTensor(rank, count * runs, producer, gives, uses_, kernels))

    def _runs(self, root: int) -> float:
        """Return how often a tensor is made and used, at least; resharding may run before a loop, or behind it."""
        nodes = {self.graph.node_of[root], *(use.node for use in self.graph.uses[root])}
        return min(self.prices.runs(self.graph, self.graph.nodes[number]) for number in nodes)

    def _needs(self, leader: int, use: NodeUse, rank: int) -> Any:
        node, head = self.graph.nodes[use.node], self.graph.head(use.node)
        return numbers_of(all_through(all_needs(node, use.operand, self.strategies[leader], head), use.dims), rank)


def need(node: PlanNode, operand: int, strategy: PlanStrategy, head: int) -> Placement:
    """Return the placement that a node needs of an operand; a node that follows needs that of its results."""
    if node.number != head or node.rule is None:
        return strategy.out
    return needed(node.rule, operand, strategy.factors)


def all_needs(node: PlanNode, operand: int, options: Strategies, head: int) -> Any:
    """Return the placements that a node needs of an operand by each of its strategies."""
    if node.number != head or node.rule is None:
        return options.outs
    return all_needed(node.rule, operand, options.factors)
