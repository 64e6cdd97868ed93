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

from shardy_py.plans.model import PlanModel, PlanTensor
from shardy_py.plans.reshards import ReshardTimes
from shardy_py.plans.solve import numpy
from shardy_py.plans.strategies import numbers_of
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
    _messages: _Messages

    @classmethod
    def of(cls, model: PlanModel) -> PlanBounds:
        """Return the bounds of a model."""
        return cls._run(model, _Messages.of(model))

    def with_prices(self, model: PlanModel) -> PlanBounds:
        """Return the bounds of the same model under another price list; they go on with the messages of this one."""
        self._messages.reprice(model)
        return self._run(model, self._messages)

    @classmethod
    def _run(cls, model: PlanModel, messages: _Messages) -> PlanBounds:
        messages.run()
        bound = messages.bound()
        strategies = {leader: messages.bounds(leader, bound) for leader in model.strategies}
        return cls(model, bound, strategies, messages.flow_bounds(bound), messages)

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
        least = self.least(side)
        self.costs -= least[:, None] if side == 0 else least
        return least[self.ends[side].rows]

    def push(self, side: int, least: Any) -> None:
        """Add the costs of an end to the edge."""
        self.costs += least[:, None] if side == 0 else least

    def least(self, side: int) -> Any:
        """Return the minimum of each row, or column."""
        return numpy().minimum.reduce(self.costs, axis=1 - side)


@define(eq=False)
class _Reshards:
    """The reshards of one tensor: the part that each use pays, by placements that are given and needed.

    A use has an edge, unless the node uses its own tensor: then it has a cost.
    """

    tensor: PlanTensor
    gives: Any
    needs: Any
    sizes: Any
    users: Any
    seconds: Any
    parts: Any
    edges: list[_Edge | None] = field(factory=list)
    columns: list[Any] = field(factory=list)

    @classmethod
    def of(cls, tensor: PlanTensor, times: ReshardTimes) -> _Reshards:
        np = numpy()
        gives = np.unique(tensor.gives)
        needs = np.unique(np.concatenate([use.needs for use in tensor.uses]))
        users = np.array([np.isin(needs, use.needs) for use in tensor.uses])
        sizes = np.where(users, np.array([use.size for use in tensor.uses])[:, None], np.inf).min(axis=0)
        seconds = times.seconds(tensor.rank, gives, needs, sizes, tensor.kernels) * tensor.count
        parts = _equal_parts(users, seconds)
        columns = [np.flatnonzero(is_needed) for is_needed in users]
        return cls(tensor, gives, needs, sizes, users.astype(float), seconds, parts, columns=columns)

    def costs(self, number: int) -> Any:
        """Return what a use pays."""
        return self.parts[number][:, self.columns[number]]

    def reprice(self, times: ReshardTimes) -> list[Any]:
        """Price the reshards anew, and return what each use pays more; parts keep their ratio."""
        np, tensor, before = numpy(), self.tensor, self.seconds
        self.seconds = times.seconds(tensor.rank, self.gives, self.needs, self.sizes, tensor.kernels) * tensor.count
        ratio = self.seconds / np.where(before > 0, before, 1.0)
        parts = np.where(before > 0, self.parts * ratio, _equal_parts(self.users, self.seconds))
        change, self.parts = parts - self.parts, parts
        return [change[number][:, columns] for number, columns in enumerate(self.columns)]

    def average(self) -> None:
        """Move parts between edges, from where they have no effect to where they do."""
        edges = [edge for edge in self.edges if edge is not None]
        if len(edges) < 2 or len(edges) < len(self.edges):
            return
        np = numpy()
        rest = np.zeros(self.parts.shape)
        for number, (edge, columns) in enumerate(zip(edges, self.columns, strict=True)):
            rest[number][:, columns] = edge.costs
        change = (rest.sum(axis=0) / self.users.sum(axis=0) - rest) * self.users[:, None, :]
        # A part may not become negative: then a use would be paid for sharing.
        step = np.minimum(1.0, (self.parts / np.maximum(-change, _TINY) + (change >= 0)).min(axis=0))
        change *= step
        self.parts += change
        np.maximum(self.parts, 0.0, out=self.parts)
        for number, (edge, columns) in enumerate(zip(edges, self.columns, strict=True)):
            edge.costs += change[number][:, columns]


def _equal_parts(users: Any, seconds: Any) -> Any:
    """Return the parts of reshards where all uses that need the placement pay the same."""
    return numpy().where(users[:, None, :] > 0, (seconds / users.sum(axis=0))[None], 0.0)


_Side = tuple[_Edge, int]
"""An edge, and the number of one of its ends."""


@define(eq=False)
class _Messages:
    model: PlanModel
    costs: dict[int, Any]
    reshards: list[_Reshards] = field(factory=list)
    edges: list[_Edge] = field(factory=list)
    edges_of: dict[int, list[_Side]] = field(factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, model: PlanModel) -> _Messages:
        messages = cls(model, {leader: costs.copy() for leader, costs in model.seconds.items()})
        for tensor in model.tensors:
            messages._add(tensor)
        for first, second in model.equal:
            messages._add_equal(first, second)
        return messages

    def reprice(self, model: PlanModel) -> None:
        """Change all costs to those of another price list."""
        for leader, costs in self.costs.items():
            costs += model.seconds[leader] - self.model.seconds[leader]
        self.model = model
        for reshards in self.reshards:
            for number, change in enumerate(reshards.reprice(model.times)):
                edge = reshards.edges[number]
                if edge is None:
                    self._add_cost(reshards, number, change)
                else:
                    edge.costs += change

    def run(self) -> None:
        """Move costs until the bound rises no more."""
        orders = [self._visits(list(self.costs)), self._visits(list(self.costs)[::-1])]
        before = self.bound()
        for number in range(_PASSES):
            self._pass(orders[number % 2])
            for reshards in self.reshards if number % 2 else ():
                reshards.average()
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
            costs += edge.least(side)[edge.ends[side].rows]
            least += float(edge.costs.min())
        return bound - least + costs

    def flow_bounds(self, bound: float) -> list[list[tuple[Any, Any, Any] | None]]:
        """Return for each use of each tensor what plans with a flow cost at least, with the placements."""
        return [
            [
                None if edge is None else (item.gives, item.needs[columns], self._bounds_of_edge(edge, bound))
                for edge, columns in zip(item.edges, item.columns, strict=True)
            ]
            for item in self.reshards
        ]

    def _bounds_of_edge(self, edge: _Edge, bound: float) -> Any:
        first, second = (end.least(self.costs[end.leader]) for end in edge.ends)
        costs = edge.costs + first[:, None] + second[None, :]
        return bound - float(edge.costs.min() + first.min() + second.min()) + costs

    def _add(self, tensor: PlanTensor) -> None:
        reshards = _Reshards.of(tensor, self.model.times)
        self.reshards.append(reshards)
        for number, use in enumerate(tensor.uses):
            edge, costs = None, reshards.costs(number)
            if tensor.leader == use.leader:
                self._add_cost(reshards, number, costs)
            else:
                needs = reshards.needs[reshards.columns[number]]
                ends = _End.of(tensor.leader, tensor.gives, reshards.gives), _End.of(use.leader, use.needs, needs)
                edge = self._connect(_Edge(costs, ends))
            reshards.edges.append(edge)

    def _add_cost(self, reshards: _Reshards, number: int, costs: Any) -> None:
        """Add what a node pays that uses its own tensor."""
        np, tensor = numpy(), reshards.tensor
        use = tensor.uses[number]
        rows = np.searchsorted(reshards.gives, tensor.gives)
        columns = np.searchsorted(reshards.needs[reshards.columns[number]], use.needs)
        self.costs[use.leader] += costs[rows, columns]

    def _add_equal(self, first: int, second: int) -> None:
        np, strategies = numpy(), self.model.strategies
        rank = len(self.model.graph.shape(self.model.graph.nodes[first].results[0]))
        outs = [numbers_of(strategies[node].outs, rank) for node in (first, second)]
        known = np.unique(outs[0]), np.unique(outs[1])
        costs = np.where(known[0][:, None] == known[1][None, :], 0.0, _FORBIDDEN)
        self._connect(_Edge(costs, (_End.of(first, outs[0], known[0]), _End.of(second, outs[1], known[1]))))

    def _connect(self, edge: _Edge) -> _Edge:
        self.edges.append(edge)
        for side, end in enumerate(edge.ends):
            self.edges_of[end.leader].append((edge, side))
        return edge

    def _visits(self, order: list[int]) -> list[tuple[int, list[_Side], list[_Side]]]:
        """Return the nodes in order, each with the edges behind and those ahead."""
        place = {leader: number for number, leader in enumerate(order)}
        visits = []
        for leader in order:
            sides: tuple[list[_Side], list[_Side]] = [], []
            for edge, side in self.edges_of[leader]:
                sides[place[edge.ends[1 - side].leader] > place[leader]].append((edge, side))
            visits.append((leader, *sides))
        return visits

    def _pass(self, visits: list[tuple[int, list[_Side], list[_Side]]]) -> None:
        """Visit nodes in order: pull costs out of the edges behind, and push them into those ahead."""
        for leader, behind, ahead in visits:
            costs = self.costs[leader]
            for edge, side in behind:
                costs += edge.pull(side)
            if not ahead:
                continue
            part = 1 / max(len(ahead), len(behind))
            least = numpy().minimum.reduce(costs)
            moved = [edge.ends[side].least(costs - least) * part for edge, side in ahead]
            for (edge, side), amount in zip(ahead, moved, strict=True):
                edge.push(side, amount)
                costs -= amount[edge.ends[side].rows]
