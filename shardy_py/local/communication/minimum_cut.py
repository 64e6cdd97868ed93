"""The minimum cut of a small flow network: nodes with an obvious side first, then shortest paths in levels (Dinic)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from attrs import field

from shardy_py.values import define

INFINITE = float("inf")
_SOURCE, _SINK = 0, 1
_TOLERANCE = 1e-6
"""Capacities are bytes, so that less than this is nothing."""


@define(eq=False)
class FlowNetwork:
    """A network of nodes that are each on the side of the source or of the sink."""

    _balance: list[float] = field(factory=list, init=False)
    """The cost of each node on the side of the sink, less that on the side of the source."""
    _outgoing: list[dict[int, float]] = field(factory=list, init=False)
    _incoming: list[dict[int, float]] = field(factory=list, init=False)

    def add_node(self, at_source: float = 0.0, at_sink: float = 0.0) -> int:
        """Return the number of a new node.

        Args:
            at_source: What it costs on the side of the source.
            at_sink: What it costs on the side of the sink.
        """
        self._balance.append(at_sink - at_source)
        self._outgoing.append({})
        self._incoming.append({})
        return len(self._balance) - 1

    def add_cost(self, node: int, at_source: float, at_sink: float) -> None:
        """Add to what a node costs on each side."""
        self._balance[node] += at_sink - at_source

    def add_edge(self, first: int, second: int, cost: float) -> None:
        """Add a cost for the first node on the side of the source together with the second on that of the sink."""
        cost += self._outgoing[first].get(second, 0.0)
        self._outgoing[first][second] = self._incoming[second][first] = cost

    def sink_side(self) -> set[int]:
        """Return the nodes on the side of the sink of the cheapest cut, as few as there can be; use up the network."""
        sink_side, undecided = self._decide()
        flow = _Flow.of(undecided, self._balance, self._outgoing)
        return sink_side | flow.reaching_sink()

    def _decide(self) -> tuple[set[int], list[int]]:
        """Take out the nodes whose costs outweigh their edges; return those at the sink, and those that are left."""
        sink_side: set[int] = set()
        is_decided = [False] * len(self._balance)
        pending = deque(range(len(self._balance)))
        is_pending = [True] * len(self._balance)
        while pending:
            node = pending.popleft()
            is_pending[node] = False
            balance, outgoing, incoming = self._balance[node], self._outgoing[node], self._incoming[node]
            if balance >= 0 and balance + _TOLERANCE >= sum(outgoing.values()):
                for other, cost in outgoing.items():
                    self._balance[other] += cost
            elif balance < 0 and -balance > sum(incoming.values()) + _TOLERANCE:
                sink_side.add(node)
                for other, cost in incoming.items():
                    self._balance[other] -= cost
            else:
                continue
            is_decided[node] = True
            for other in outgoing:
                del self._incoming[other][node]
            for other in incoming:
                del self._outgoing[other][node]
            for other in (*outgoing, *incoming):
                if not is_pending[other]:
                    is_pending[other] = True
                    pending.append(other)
        return sink_side, [node for node, decided in enumerate(is_decided) if not decided]


@define(eq=False)
class _Flow:
    """A flow from the source to the sink, which come before the other nodes.

    Attributes:
        nodes: The numbers of these in the network.
    """

    nodes: Sequence[int]
    _edges: list[list[int]] = field(factory=list, init=False)
    """The edges at each node; each edge is followed by its reverse."""
    _target: list[int] = field(factory=list, init=False)
    _capacity: list[float] = field(factory=list, init=False)

    @classmethod
    def of(cls, nodes: Sequence[int], balance: Sequence[float], outgoing: Sequence[Mapping[int, float]]) -> _Flow:
        """Return no flow yet among some nodes of a network.

        Args:
            nodes: The nodes.
            balance: What each node of the network costs more on the side of the sink.
            outgoing: The costs of the edges from each node, by the node that they lead to.
        """
        flow, local_numbers = cls(nodes), {node: number for number, node in enumerate(nodes, start=_SINK + 1)}
        flow._edges.extend([] for _ in range(len(nodes) + 2))
        for node, number in local_numbers.items():
            if balance[node] > 0:
                flow._add_edge(_SOURCE, number, balance[node])
            elif balance[node] < 0:
                flow._add_edge(number, _SINK, -balance[node])
            for other, cost in outgoing[node].items():
                flow._add_edge(number, local_numbers[other], cost)
        return flow

    def _add_edge(self, start: int, end: int, capacity: float) -> None:
        for first, second, amount in ((start, end, capacity), (end, start, 0.0)):
            self._edges[first].append(len(self._target))
            self._target.append(second)
            self._capacity.append(amount)

    def reaching_sink(self) -> set[int]:
        """Return the nodes from which no flow can use up all that leads to the sink."""
        while True:
            levels = self._levels()
            if levels[_SINK] < 0:
                break
            following = [0] * len(self._edges)
            while self._augment(levels, following):
                pass
        reaching, pending = {_SINK}, [_SINK]
        while pending:
            node = pending.pop()
            for edge in self._edges[node]:
                start = self._target[edge]
                if self._capacity[edge ^ 1] > _TOLERANCE and start not in reaching:
                    reaching.add(start)
                    pending.append(start)
        return {node for number, node in enumerate(self.nodes, start=_SINK + 1) if number in reaching}

    def _levels(self) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[_SOURCE] = 0
        pending = deque((_SOURCE,))
        while pending:
            node = pending.popleft()
            for edge in self._edges[node]:
                end = self._target[edge]
                if self._capacity[edge] > _TOLERANCE and levels[end] < 0:
                    levels[end] = levels[node] + 1
                    pending.append(end)
        return levels

    def _augment(self, levels: list[int], following: list[int]) -> bool:
        """Send what fits along one path of growing levels, and return whether there was one."""
        path: list[int] = []
        node = _SOURCE
        while node != _SINK:
            edges = self._edges[node]
            while following[node] < len(edges):
                edge = edges[following[node]]
                if self._capacity[edge] > _TOLERANCE and levels[self._target[edge]] == levels[node] + 1:
                    break
                following[node] += 1
            if following[node] < len(edges):
                path.append(edges[following[node]])
                node = self._target[path[-1]]
            elif not path:
                return False
            else:
                node = self._target[path.pop() ^ 1]
                following[node] += 1
        amount = min(self._capacity[edge] for edge in path)
        for edge in path:
            self._capacity[edge] -= amount
            self._capacity[edge ^ 1] += amount
        return True
