"""The minimum cut of a small flow network, by shortest augmenting paths in levels (Dinic)."""

from __future__ import annotations

from collections import deque

from attrs import field

from shardy_py.values import define

INFINITE = float("inf")
_SOURCE, _SINK = 0, 1
_TOLERANCE = 1e-6
"""Capacities are bytes, so that less than this is nothing."""


@define(eq=False)
class FlowNetwork:
    """A network of nodes that are each on the side of the source or of the sink.

    Node 0 is the source, node 1 the sink.
    """

    _edges: list[list[int]] = field(factory=lambda: [[], []], init=False)
    _target: list[int] = field(factory=list, init=False)
    _capacity: list[float] = field(factory=list, init=False)

    def add_node(self, at_source: float = 0.0, at_sink: float = 0.0) -> int:
        """Return the number of a new node.

        Args:
            at_source: What it costs on the side of the source.
            at_sink: What it costs on the side of the sink.
        """
        self._edges.append([])
        node = len(self._edges) - 1
        self.add_cost(node, at_source, at_sink)
        return node

    def add_cost(self, node: int, at_source: float, at_sink: float) -> None:
        """Add to what a node costs on each side; a negative cost counts on the other side."""
        at_source, at_sink = at_source - min(at_source, at_sink, 0.0), at_sink - min(at_source, at_sink, 0.0)
        if at_source > 0:
            self.add_edge(node, _SINK, at_source)
        if at_sink > 0:
            self.add_edge(_SOURCE, node, at_sink)

    def add_edge(self, first: int, second: int, cost: float) -> None:
        """Add a cost for the first node on the side of the source together with the second on that of the sink."""
        for start, end, capacity in ((first, second, cost), (second, first, 0.0)):
            self._edges[start].append(len(self._target))
            self._target.append(end)
            self._capacity.append(capacity)

    def sink_side(self) -> set[int]:
        """Return the nodes on the side of the sink of the cheapest cut, the largest such set of those of the source."""
        while True:
            levels = self._levels()
            if levels[_SINK] < 0:
                break
            following = [0] * len(self._edges)
            while self._augment(levels, following):
                pass
        reached = self._reaching_sink()
        return {node for node in range(2, len(self._edges)) if node in reached}

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

    def _reaching_sink(self) -> set[int]:
        """Return the nodes from which the sink can still be reached."""
        reaching, pending = {_SINK}, [_SINK]
        while pending:
            node = pending.pop()
            for edge in self._edges[node]:
                start = self._target[edge]
                if self._capacity[edge ^ 1] > _TOLERANCE and start not in reaching:
                    reaching.add(start)
                    pending.append(start)
        return reaching
