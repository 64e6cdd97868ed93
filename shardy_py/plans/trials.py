"""Plans that are priced: written into the program in several ways, each with its time by the estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.api.options import SessionArguments
from shardy_py.cost.reopen import changed_text, open_changed
from shardy_py.cost.session import Session
from shardy_py.frontends.select import frontend_of
from shardy_py.plans.fewest import fewest_pins
from shardy_py.plans.graph import PlanGraph
from shardy_py.plans.model import Choice
from shardy_py.plans.prices import Prices
from shardy_py.plans.result import PlannedConstraint, ShardingPlan
from shardy_py.plans.roles import axis_roles
from shardy_py.plans.write import Pin, PlanWriter, WrittenPlan
from shardy_py.values import define

_SAME = 1e-3
"""The part by which a plan may cost more without a sharding inside that is left out."""
_FAR = 1.5
"""The ratio of times from which shardings of the inputs alone are far dearer."""


@define(eq=False)
class PlanTrials:
    """Prices plans and keeps the best.

    Attributes:
        source: What the session of the program was opened with.
        graph: Its graph.
        prices: The prices.
        mesh_name: The name of the mesh.
        tied: The results that have the placement of an argument: result number to node.
        budget: The bytes that a device may use at most, or None.
        bound: The bound of all plans, in seconds.
        space: The space in which it holds.
        best: The best plan that fits.
        smallest: The bytes of the plan with the smallest memory.
        pinned: The best plan that fits with all shardings inside, and what wrote it.
        is_priced_by_inputs: Whether shardings of the inputs alone are priced, too.
    """

    source: SessionArguments
    graph: PlanGraph
    prices: Prices
    mesh_name: str
    tied: dict[int, int]
    budget: float | None
    bound: float
    space: str
    best: ShardingPlan | None = None
    smallest: float | None = None
    pinned: tuple[ShardingPlan, PlanWriter, tuple[Pin, ...]] | None = None
    is_priced_by_inputs: bool = True

    def consider(self, choice: Choice) -> float:
        """Price a choice with shardings of the inputs only, and with all inside; return the smallest peak in bytes.

        Where the first is far dearer for one choice, it is not priced for others.
        """
        seconds: list[float] = []
        peaks: list[float] = []
        for plan, writer, pins in self.price_ways(choice, with_inputs_only=self.is_priced_by_inputs):
            seconds.append(plan.seconds)
            peaks.append(plan.peak_bytes)
            if not self._fits(plan):
                continue
            if self.best is None or plan.seconds < self.best.seconds:
                self.best = plan
            if pins and (self.pinned is None or plan.seconds < self.pinned[0].seconds):
                self.pinned = plan, writer, pins
        self.is_priced_by_inputs &= seconds[0] <= seconds[-1] * _FAR
        self.smallest = min(peaks) if self.smallest is None else min(self.smallest, *peaks)
        return min(peaks)

    def price_ways(
        self, choice: Choice, *, with_inputs_only: bool = True
    ) -> Iterator[tuple[ShardingPlan, PlanWriter, tuple[Pin, ...]]]:
        """Yield the plans of a choice, with shardings of the inputs only, and with all inside, and what wrote them."""
        writer = PlanWriter(self.graph, self.prices, self.mesh_name, choice, self.tied)
        for pins in ((), writer.pins()) if with_inputs_only else (writer.pins(),):
            yield self._price(writer, pins), writer, pins

    def local_bytes(self, plan: ShardingPlan) -> float | None:
        """Return the bytes that the local program of a plan sends; None where there is no local program."""
        evaluation = self._open(plan.written).evaluate(machine=self.prices.machine, partitioner="shardy_py")
        return evaluation.cost.communication_bytes.value if evaluation.cost.is_counted else None

    def is_close(self, gap: float) -> bool:
        """Return whether the best plan exceeds the bound by at most a part of it."""
        return self.best is not None and self.best.gap is not None and self.best.gap <= gap

    def leave_out_pins(self, count: int) -> None:
        """Leave out the shardings inside that make the plan no cheaper; `count` plans are priced at most."""
        if self.pinned is None or self.best is None:
            return
        plan, writer, pins = self.pinned
        limit = plan.seconds * (1 + _SAME)

        def price(rest: Sequence[Pin]) -> ShardingPlan | None:
            nonlocal limit
            candidate = self._price(writer, rest)
            if candidate.seconds > limit or not self._fits(candidate):
                return None
            limit = min(limit, candidate.seconds * (1 + _SAME))
            return candidate

        _, held = fewest_pins(pins, plan, price, count)
        if self.best.constraints or held.seconds < self.best.seconds * (1 - _SAME):
            self.best = held

    def _fits(self, plan: ShardingPlan) -> bool:
        return self.budget is None or plan.peak_bytes <= self.budget

    def _price(self, writer: PlanWriter, pins: Sequence[Pin]) -> ShardingPlan:
        written = writer.written(pins)
        session = self._open(written)
        cost = session.price(session.solve(), self.prices.machine).cost
        ops = {node.op.id: node.op for node in self.graph.nodes if node.op is not None}
        return ShardingPlan(
            seconds=cost.seconds.value or 0.0,
            compute_seconds=cost.compute_seconds.value or 0.0,
            communication_seconds=cost.communication_seconds.value or 0.0,
            bound_seconds=self.bound,
            sent_bytes=cost.communication_bytes.value or 0.0,
            peak_bytes=cost.peak_bytes.value or 0.0,
            machine=self.prices.machine.name,
            mesh={axis.name: axis.size for axis in self.prices.mesh.axes},
            inputs=writer.inputs(),
            results=writer.results(),
            constraints=tuple(
                PlannedConstraint(ops[pin.op].name, str(ops[pin.op].location), pin.operand, pin.sharding)
                for pin in pins
            ),
            result_count=len(self.graph.returned()),
            roles=axis_roles(writer),
            space=self.space,
            written=written,
            write=lambda: changed_text(self.source, written.write_into),
            frontend=frontend_of(self.graph.session.program).name,
        )

    def _open(self, written: WrittenPlan) -> Session:
        """Return the session of the program with a plan written into it."""
        return open_changed(self.source, written.write_into)
