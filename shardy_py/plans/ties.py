"""Ties: nodes that repeat, such as those of equal layers, get one choice.

Two nodes are equal if their ops have the same name, rule, types and kernels, and if the same holds for what surrounds
them up to some distance. No names of layers are needed; where arguments have names, those of one layer differ by them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from attrs import field

from shardy_py.plans.graph import Placement, PlanGraph, PlanNode
from shardy_py.plans.prices import Prices
from shardy_py.plans.strategies import usable_factors
from shardy_py.values import define

_NUMBER = re.compile(r"\d+")
_RADIUS = 4
"""The distance up to which the surroundings of ops have to be equal."""
_ARGUMENT_RADIUS = 2
"""The same for arguments: those of the first and the last layer are equal to the others."""
_PERIODS = (4, 2, 1)
"""Every how many repeats are tied, the largest that fits: in a chain of products neighbours may differ."""
_LIMIT = 4_000
"""The number of strategies above which repeats are tied."""


@define(eq=False)
class PlanTies:
    """The nodes that share one choice.

    Attributes:
        leaders: Node with a choice to the node whose choice it has.
        counts: Leader to the number of nodes that share its choice.
    """

    leaders: dict[int, int] = field(factory=dict)
    counts: Counter[int] = field(factory=Counter)

    @classmethod
    def of(
        cls, graph: PlanGraph, prices: Prices, fixed: Mapping[int, Placement], tied: Iterable[tuple[int, int]]
    ) -> PlanTies:
        """Return no ties for a small program, those of repeats for a large one.

        Args:
            graph: The graph.
            prices: The prices.
            fixed: Node to the placement that it has to keep.
            tied: Pairs of nodes that have the same placement.
        """
        heads = [node.number for node in graph.nodes if graph.head(node.number) == node.number]
        sizes = {head: (len(usable_factors(graph, graph.nodes[head])) + 1) ** len(prices.axes) for head in heads}
        ties = cls({head: head for head in heads}, Counter(heads))
        if sum(sizes.values()) <= _LIMIT:
            return ties
        colours = _Colours.of(graph, prices, fixed, tied)
        for period in _PERIODS:
            first: dict[int, int] = {}
            colour_of = colours.refined(period)
            leaders = {head: first.setdefault(colour_of[head], head) for head in heads}
            ties = cls(leaders, Counter(leaders.values()))
            if sum(sizes[leader] for leader in ties.counts) <= _LIMIT:
                break
        return ties


@define(eq=False)
class _Colours:
    """Colours of nodes: equal for nodes that are equal up to a distance."""

    graph: PlanGraph
    first: list[int]
    operands: list[tuple[tuple[int, Hashable], ...]]
    users: dict[int, list[tuple[int, Hashable]]]
    fixed: Mapping[int, Placement]

    @classmethod
    def of(
        cls, graph: PlanGraph, prices: Prices, fixed: Mapping[int, Placement], tied: Iterable[tuple[int, int]]
    ) -> _Colours:
        operands: list[tuple[tuple[int, Hashable], ...]] = []
        users: dict[int, list[tuple[int, Hashable]]] = defaultdict(list)
        for node in graph.nodes:
            inputs = []
            for number in node.live:
                root, dims = graph.views[node.operands[number]]
                producer = graph.node_of[root]
                inputs.append((producer, (number, dims)))
                users[producer].append((node.number, (number, dims)))
            operands.append(tuple(inputs))
        for first_node, second_node in tied:
            users[first_node].append((second_node, "tied"))
            users[second_node].append((first_node, "tied"))
        first = _numbered([(*_key(graph, node, prices), fixed.get(node.number)) for node in graph.nodes])
        return cls(graph, first, operands, users, fixed)

    def refined(self, period: int) -> list[int]:
        """Return the colour of each node where every `period`-th repeat is equal."""
        colours = self._refine(self.first, _ARGUMENT_RADIUS)
        seen: Counter[int] = Counter()
        start = list(self.first)
        keys: list[tuple[int, int]] = []
        for node in self.graph.nodes:
            colour = colours[node.number]
            keys.append((colour, seen[colour] % period) if node.op is None else (-1, start[node.number]))
            seen[colour] += 1
        return self._refine(_numbered(keys), _RADIUS, keep_arguments=True)

    def _refine(self, colours: list[int], rounds: int, *, keep_arguments: bool = False) -> list[int]:
        for _ in range(rounds):
            keys: list[Any] = []
            for node in self.graph.nodes:
                number = node.number
                if node.op is None and keep_arguments:
                    keys.append((colours[number], None, None))
                    continue
                inputs = tuple((colours[producer], how) for producer, how in self.operands[number])
                outputs = sorted(((colours[user], str(how)) for user, how in self.users[number]))
                keys.append((colours[number], inputs, tuple(outputs)))
            colours = _numbered(keys)
        return colours


def _key(graph: PlanGraph, node: PlanNode, prices: Prices) -> tuple[Hashable, ...]:
    types = tuple(graph.type_text(slot) for slot in node.results if slot >= 0)
    if node.op is None:
        return (_NUMBER.sub("*", node.name), types)
    kernel = prices.kernels.get(node.op.id)
    return (node.name, node.rule, types, None if kernel is None else kernel.seconds)


def _numbered(keys: list[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
