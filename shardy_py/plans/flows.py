"""The flows of one tensor: from the placements that its producer may give to those that its uses may need.

All flows of a tensor are as many as the square of its placements, and a plan needs a handful. Where bounds say which
flows a plan may have, these are added, and no others. Else the linear program starts with those that gather the tensor
and slice it again, which any plan may take, and gets others when the prices of its rows show that they would make the
plan cheaper. When none would, the solution is that of all flows together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import Any

from attrs import field

from shardy_py.plans.model import PlanTensor, TensorUse
from shardy_py.plans.reshards import ReshardTimes
from shardy_py.plans.solve import LinearProgram, numpy
from shardy_py.values import define

Choices = dict[int, list[int]]
"""Number of a placement to the columns of the choices that give or need it."""
_WHOLE = 0
"""The number of the placement that shards nothing."""
_CHEAPER = 1e-7
"""The units of the linear program by which a flow has to be cheaper than the prices of its rows."""


@define(eq=False)
class TensorCopy:
    """The copy of a resharded tensor: a column that is 1 where there is one.

    Attributes:
        column: The column.
        size: The bytes on a device.
        spans: For each of the equal tensors the first and the last op at which it lives.
    """

    column: int
    size: float
    spans: list[tuple[int, int]]


@define(eq=False)
class FlowUse:
    """One use of a tensor.

    Attributes:
        needs: The placements that it may need.
        columns: Its positions among those that any use may need.
        give_rows: The row of each placement of the producer.
        need_rows: The row of each placement that it may need.
        whole_row: The row through which the gathered tensor flows; -1 where the flows are known.
        flows: The pairs of placements that a plan may have; None for any.
        spans: For each of the equal tensors the first and the last op that uses it; none where an earlier use has
            a copy then, which may be the same.
    """

    needs: list[int]
    columns: Any
    give_rows: Any
    need_rows: Any
    whole_row: int
    flows: frozenset[tuple[int, int]] | None
    spans: list[tuple[int, int]]


@define(eq=False)
class TensorFlows:
    """The flows of a tensor in a linear program.

    Attributes:
        program: The linear program.
        rank: The rank of the tensor.
        count: The number of tensors that these flows stand for.
        gives: The placements that the producer may give.
        needs: The placements that a use may need.
        uses: The uses.
        copies: The copies that flows make.
        keeps_copies: Whether a copy that several uses share lives between them.
    """

    program: LinearProgram
    rank: int
    count: float
    gives: list[int]
    needs: list[int]
    uses: list[FlowUse] = field(factory=list)
    copies: list[TensorCopy] = field(factory=list)
    keeps_copies: bool = False
    _sizes: Any = None
    _whole_size: float = 0.0
    _seconds: Any = None
    _has_flow: Any = None
    _gather_seconds: Any = None

    @classmethod
    def of(
        cls,
        program: LinearProgram,
        times: ReshardTimes,
        tensor: PlanTensor,
        producer: Choices,
        uses: Sequence[tuple[Choices, TensorUse]],
        *,
        keeps_copies: bool,
    ) -> TensorFlows:
        """Add the first flows of a tensor to a linear program."""
        np = numpy()
        sizes: dict[int, float] = {}
        for needed, use in uses:
            for number in needed:
                sizes[number] = min(use.size, sizes.get(number, inf))
        needs = sorted(sizes)
        rank, count = tensor.rank, tensor.count
        flows = cls(program, rank, count, sorted(producer), needs, keeps_copies=keeps_copies)
        needed_sizes = np.array([sizes[need] for need in needs])
        flows._sizes = times.copy_sizes(rank, flows.gives, needs, needed_sizes)
        flows._whole_size = max(use.size for _, use in uses)
        flows._seconds = times.seconds(rank, flows.gives, needs, needed_sizes, tensor.kernels) * count
        flows._gather_seconds = times.seconds(rank, flows.gives, [_WHOLE], flows._whole_size)[:, 0] * count
        flows._has_flow = np.zeros(flows._seconds.shape, dtype=bool)
        for needed, use in uses:
            flows._add_use(producer, needed, use)
        if any(use.flows is None for _, use in uses):
            flows._add_gathers()
            pairs = {(give, give) for give in flows.gives if give in sizes}
        else:
            pairs = {(give, need) for _, use in uses for give, need in use.flows or () if give in producer}
            pairs = {pair for pair in pairs if pair[1] in sizes}
        for give, need in sorted(pairs):
            row, position = flows.gives.index(give), needs.index(need)
            if not flows._has_flow[row, position]:
                flows._add(row, position)
        return flows

    def add_cheaper(self, duals: Any, memory: Mapping[int, float]) -> int:
        """Add flows that are cheaper than the prices of their rows, and return how many there were.

        Args:
            duals: The prices of the rows.
            memory: Point of time to the price of a byte that lives then; it is at most zero.
        """
        if self._is_complete:
            return 0
        np = numpy()
        gain = np.zeros(self._seconds.shape)
        for use in self.uses:
            both = duals[use.give_rows][:, None] + duals[use.need_rows][None, :]
            if memory:
                both = both + self._sizes[:, use.columns] * _price(memory, use.spans)
            gain[:, use.columns] += both if len(self.uses) == 1 else np.maximum(both, 0)
        reduced = self._seconds - gain
        reduced[self._has_flow] = 0
        best = set(zip(range(len(self.gives)), reduced.argmin(axis=1).tolist(), strict=True))
        best |= set(zip(reduced.argmin(axis=0).tolist(), range(len(self.needs)), strict=True))
        cheaper = [(row, need) for row, need in sorted(best) if reduced[row, need] < -_CHEAPER * self.program.unit]
        for row, need in cheaper:
            self._add(row, need)
        return len(cheaper)

    def make_free(self) -> None:
        """Let flows that are added from now on cost nothing."""
        self._seconds = self._seconds * 0.0

    @property
    def _is_complete(self) -> bool:
        return all(use.flows is not None for use in self.uses)

    def _add_use(self, producer: Choices, needed: Choices, use: TensorUse) -> None:
        np, program = numpy(), self.program
        needs = sorted(needed)
        give_rows = [program.row(0.0, 0.0) for _ in self.gives]
        need_rows = [program.row(0.0, 0.0) for _ in needs]
        for row, give in zip(give_rows, self.gives, strict=True):
            for column in producer[give]:
                program.enter(row, column, -1.0)
        for row, need in zip(need_rows, needs, strict=True):
            for column in needed[need]:
                program.enter(row, column, -1.0)
        positions = np.array([self.needs.index(need) for need in needs])
        whole_row = -1 if use.flows is not None else program.row(0.0, 0.0)
        spans = [] if any(_overlap(known.spans, use.spans) for known in self.uses) else use.spans
        self.uses.append(
            FlowUse(needs, positions, np.array(give_rows), np.array(need_rows), whole_row, use.flows, spans)
        )

    def _add_gathers(self) -> None:
        """Let the tensor be gathered and sliced for each use."""
        program = self.program
        if _WHOLE in self.gives:
            self._has_flow[self.gives.index(_WHOLE), :] = True
        for use in self.uses:
            for row, give in enumerate(self.gives):
                flow = program.column(0.0)
                program.enter(int(use.give_rows[row]), flow, 1.0)
                program.enter(use.whole_row, flow, 1.0)
                if give != _WHOLE:
                    program.costs[flow] = float(self._gather_seconds[row])
                    self.copies.append(TensorCopy(flow, self._whole_size, use.spans))
            for need_row in use.need_rows:
                flow = program.column(0.0)
                program.enter(int(need_row), flow, 1.0)
                program.enter(use.whole_row, flow, -1.0)

    def _add(self, row: int, need: int) -> None:
        """Add the flows of all uses from one placement to another; together they cost once."""
        program = self.program
        self._has_flow[row, need] = True
        pair = self.gives[row], self.needs[need]
        users = [use for use in self.uses if pair[1] in use.needs and (use.flows is None or pair in use.flows)]
        seconds, size = float(self._seconds[row, need]), float(self._sizes[row, need])
        shared = program.column(seconds) if len(users) > 1 and seconds > 0 else None
        columns = []
        for use in users:
            flow = program.column(seconds if shared is None else 0.0)
            program.enter(int(use.give_rows[row]), flow, 1.0)
            program.enter(int(use.need_rows[use.needs.index(pair[1])]), flow, 1.0)
            if size > 0:
                self.copies.append(TensorCopy(flow, size, use.spans))
            columns.append(flow)
            if shared is not None:
                self._share(shared, flow)
        if shared is not None and size > 0 and self.keeps_copies:
            self._keep(shared, list(zip(users, columns, strict=True)), size)

    def _share(self, shared: int, flow: int) -> None:
        row = self.program.row(0.0, inf)
        self.program.enter(row, shared, 1.0)
        self.program.enter(row, flow, -1.0)

    def _keep(self, shared: int, users: Sequence[tuple[FlowUse, int]], size: float) -> None:
        """Let a shared copy live between two uses, one after the other, that both take it."""
        in_order = sorted((user for user in users if user[0].spans), key=lambda user: user[0].spans[0])
        for (first, flow), (second, other) in pairwise(in_order):
            spans = [(end + 1, start - 1) for (_, end), (start, _) in zip(first.spans, second.spans, strict=True)]
            spans = [(since, until) for since, until in spans if since <= until]
            if not spans:
                continue
            column, row = self.program.column(0.0), self.program.row(0.0, inf)
            for entered, value in ((column, 1.0), (shared, 1.0), (flow, -1.0), (other, -1.0)):
                self.program.enter(row, entered, value)
            self.copies.append(TensorCopy(column, size, spans))


def _overlap(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    return any(a <= d and c <= b for (a, b), (c, d) in zip(first, second, strict=False))


def _price(memory: Mapping[int, float], spans: Sequence[tuple[int, int]]) -> float:
    """Return the price of a byte that lives over spans."""
    return sum(price for time, price in memory.items() for since, until in spans if since <= time <= until)
