"""Messages between nodes: lower bounds for all plans, and for those with a strategy, without a solver.

The cost of a plan is a sum over nodes and edges. Costs can be moved between a node and its edges without changing that
sum; the sum of all minima is then a bound, and moving costs forwards and backwards through the program raises it
(V. Kolmogorov, "A New Look at Reweighted Message Passing", 2015). A reshard that several uses share is split among
them, and the parts are moved between them as well. The bound ends near that of the linear program. Strategies and
flows that only dearer plans have are left out of that, and it is small.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from attrs import evolve, field

from shardy_py.plans.model import PlanModel, PlanTensor, TensorUse
from shardy_py.plans.solve import numpy
from shardy_py.values import define

_PASSES = 200
_BATCH = 20
"""Number of passes after which the bound has to have risen."""
_RISE = 2e-5
_ROUNDING = 1e-12
_TINY = 1e-30
_FORBIDDEN = 1e3
"""The seconds of a combination that is not allowed."""


@define(eq=False)
class PlanBounds:
    """Bounds of a model: of all plans, and of those with a strategy or a flow.

    Attributes:
        model: The model.
        seconds: No plan costs less.
    """

    model: PlanModel
    seconds: float
    _strategies: dict[int, Any]
    _flows: list[list[tuple[Any, Any, Any] | None]]

    @classmethod
    def of(cls, model: PlanModel) -> PlanBounds:
        """Return the bounds of a model."""
        messages = _Messages.of(model)
        messages.run()
        bound = messages.bound()
        strategies = {leader: messages.bounds(leader, bound) for leader in model.strategies}
        return cls(model, bound, strategies, messages.flow_bounds(bound))

    def limit(self, part: float) -> float:
        """Return the seconds that exceed the bound by a part of it."""
        return self.seconds * (1 + part) + _ROUNDING

    def columns(self, part: float) -> int:
        """Return the number of strategies and flows that plans which exceed the bound by a part may have."""
        seconds = self.limit(part)
        flows = (edge[2] for edges in self._flows for edge in edges if edge is not None)
        return sum(int((bounds <= seconds).sum()) for bounds in (*self._strategies.values(), *flows))

    def within(self, part: float) -> PlanModel | None:
        """Return the model with what plans that exceed the bound by at most a part may have; None if there are none."""
        np, seconds = numpy(), self.limit(part)
        numbers = {leader: np.flatnonzero(bounds <= seconds) for leader, bounds in self._strategies.items()}
        if not all(map(len, numbers.values())):
            return None
        model = self.model.keep(numbers)
        tensors = []
        for tensor, edges in zip(model.tensors, self._flows, strict=True):
            uses = []
            for use, edge in zip(tensor.uses, edges, strict=True):
                if edge is None:
                    flows = frozenset(zip(tensor.gives.tolist(), use.needs.tolist(), strict=True))
                else:
                    gives, needs, bounds = edge
                    rows, columns = np.nonzero(bounds <= seconds)
                    flows = frozenset(zip(gives[rows].tolist(), needs[columns].tolist(), strict=True))
                uses.append(evolve(use, flows=flows))
            tensors.append(evolve(tensor, uses=uses))
        return evolve(model, tensors=tensors)


@define(eq=False)
class _End:
    """One end of an edge: the node, the row of the edge for each of its strategies, and these in order of rows."""

    leader: int
    rows: Any
    order: Any
    starts: Any

    @classmethod
    def of(cls, leader: int, placements: Any, known: Any) -> _End:
        np = numpy()
        rows = np.searchsorted(known, placements)
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], np.arange(len(known)))
        return cls(leader, rows, order, starts)

    def least(self, seconds: Any) -> Any:
        """Return the least of a node's costs for each row."""
        return numpy().minimum.reduceat(seconds[self.order], self.starts)


@define(eq=False)
class _Edge:
    """An edge: costs by row of its first end and column of its second."""

    costs: Any
    ends: tuple[_End, _End]

    def pull(self, side: int) -> Any:
        """Subtract the minimum of each row, or column, from the edge; return it for each strategy of that end."""
        least = self.costs.min(axis=1 - side)
        self.costs -= least[:, None] if side == 0 else least[None, :]
        return least[self.ends[side].rows]

    def push(self, side: int, least: Any) -> None:
        """Add the costs of an end to the edge."""
        self.costs += least[:, None] if side == 0 else least[None, :]


@define(eq=False)
class _Shared:
    """Edges of one tensor that share reshards: their parts of the costs, on the placements that all may need."""

    parts: Any
    users: Any
    edges: list[_Edge]
    columns: list[Any]

    def average(self) -> None:
        """Move parts between edges, from where they have no effect to where they do."""
        np = numpy()
        rest = np.zeros(self.parts.shape)
        for number, (edge, columns) in enumerate(zip(self.edges, self.columns, strict=True)):
            rest[number][:, columns] = edge.costs
        change = (rest.sum(axis=0) / self.users.sum(axis=0) - rest) * self.users[:, None, :]
        # A part may not become negative: then a use would be paid for sharing.
        step = np.minimum(1.0, (self.parts / np.maximum(-change, _TINY) + (change >= 0)).min(axis=0))
        change *= step
        self.parts += change
        np.maximum(self.parts, 0.0, out=self.parts)
        for number, (edge, columns) in enumerate(zip(self.edges, self.columns, strict=True)):
            edge.costs += change[number][:, columns]


@define(eq=False)
class _Messages:
    model: PlanModel
    order: list[int] = field(factory=list)
    costs: dict[int, Any] = field(factory=dict)
    edges: list[_Edge] = field(factory=list)
    shared: list[_Shared] = field(factory=list)
    edges_of: dict[int, list[tuple[_Edge, int]]] = field(factory=lambda: defaultdict(list))
    flows: list[list[tuple[_Edge | None, tuple[Any, Any]]]] = field(factory=list)

    @classmethod
    def of(cls, model: PlanModel) -> _Messages:
        messages = cls(model, list(model.strategies), {leader: costs.copy() for leader, costs in model.seconds.items()})
        for tensor in model.tensors:
            messages._add(tensor)
        for first, second in model.equal:
            messages._add_equal(first, second)
        return messages

    def run(self) -> None:
        """Move costs until the bound rises no more."""
        before = self.bound()
        for number in range(_PASSES):
            self._pass(is_forward=number % 2 == 0)
            for shared in self.shared if number % 2 else ():
                shared.average()
            if number % _BATCH == _BATCH - 1:
                bound = self.bound()
                if bound - before <= _RISE * abs(bound):
                    break
                before = bound

    def bound(self) -> float:
        """Return the sum of all minima: no plan costs less."""
        return float(sum(costs.min() for costs in self.costs.values()) + sum(edge.costs.min() for edge in self.edges))

    def bounds(self, leader: int, bound: float) -> Any:
        """Return for each strategy of a node what plans with it cost at least."""
        costs, edges = self.costs[leader].copy(), self.edges_of[leader]
        least = float(costs.min())
        for edge, side in edges:
            costs += edge.costs.min(axis=1 - side)[edge.ends[side].rows]
            least += float(edge.costs.min())
        return bound - least + costs

    def flow_bounds(self, bound: float) -> list[list[tuple[Any, Any, Any] | None]]:
        """Return for each use of each tensor what plans with a flow cost at least, with the placements."""
        return [
            [None if edge is None else (*known, self._bounds_of_edge(edge, bound)) for edge, known in edges]
            for edges in self.flows
        ]

    def _bounds_of_edge(self, edge: _Edge, bound: float) -> Any:
        first, second = (end.least(self.costs[end.leader]) for end in edge.ends)
        costs = edge.costs + first[:, None] + second[None, :]
        return bound - float(edge.costs.min() + first.min() + second.min()) + costs

    def _add(self, tensor: PlanTensor) -> None:
        np, times = numpy(), self.model.times
        gives = np.unique(tensor.gives)
        needs = np.unique(np.concatenate([use.needs for use in tensor.uses]))
        users = np.array([np.isin(needs, use.needs) for use in tensor.uses])
        sizes = np.where(users, np.array([use.size for use in tensor.uses])[:, None], np.inf).min(axis=0)
        seconds = times.seconds(tensor.rank, gives, needs, sizes) * tensor.count / users.sum(axis=0)
        edges, columns = [], []
        self.flows.append([])
        for use, is_needed in zip(tensor.uses, users, strict=True):
            needed = np.flatnonzero(is_needed)
            edge = self._edge(tensor, use, gives, needs[needed], seconds[:, needed].copy())
            self.flows[-1].append((edge, (gives, needs[needed])))
            if edge is not None:
                edges.append(edge)
                columns.append(needed)
        if len(edges) > 1 and len(edges) == len(tensor.uses):
            parts = np.array([np.where(is_needed[None, :], seconds, 0.0) for is_needed in users])
            self.shared.append(_Shared(parts, users.astype(float), edges, columns))

    def _edge(self, tensor: PlanTensor, use: TensorUse, gives: Any, needs: Any, costs: Any) -> _Edge | None:
        """Return the edge of a use; a node that uses its own tensor has a cost instead."""
        ends = _End.of(tensor.leader, tensor.gives, gives), _End.of(use.leader, use.needs, needs)
        if tensor.leader == use.leader:
            self.costs[use.leader] += costs[ends[0].rows, ends[1].rows]
            return None
        return self._connect(_Edge(costs, ends))

    def _add_equal(self, first: int, second: int) -> None:
        np, strategies = numpy(), self.model.strategies
        rank = len(self.model.graph.shape(self.model.graph.nodes[first].results[0]))
        numbers = self.model.times.numbers(rank)
        outs = [np.array([numbers[strategy.out] for strategy in strategies[node]]) for node in (first, second)]
        known = np.unique(outs[0]), np.unique(outs[1])
        costs = np.where(known[0][:, None] == known[1][None, :], 0.0, _FORBIDDEN)
        self._connect(_Edge(costs, (_End.of(first, outs[0], known[0]), _End.of(second, outs[1], known[1]))))

    def _connect(self, edge: _Edge) -> _Edge:
        self.edges.append(edge)
        for side, end in enumerate(edge.ends):
            self.edges_of[end.leader].append((edge, side))
        return edge

    def _pass(self, *, is_forward: bool) -> None:
        """Visit nodes in order: pull costs out of the edges behind, and push them into those ahead."""
        place = {leader: number for number, leader in enumerate(self.order)}
        for leader in self.order if is_forward else reversed(self.order):
            behind: list[tuple[_Edge, int]] = []
            ahead: list[tuple[_Edge, int]] = []
            for edge, side in self.edges_of[leader]:
                is_later = place[edge.ends[1 - side].leader] > place[leader]
                (ahead if is_later == is_forward else behind).append((edge, side))
            costs = self.costs[leader]
            for edge, side in behind:
                costs += edge.pull(side)
            if not ahead:
                continue
            part = 1 / max(len(ahead), len(behind))
            least = costs.min()
            moved = [edge.ends[side].least(costs - least) * part for edge, side in ahead]
            for (edge, side), amount in zip(ahead, moved, strict=True):
                edge.push(side, amount)
                costs -= amount[edge.ends[side].rows]
