"""Runs of the computations of an HLO module, and costs that count loops as often as they run.

XLA's analysis counts the body of a loop once, whatever its length, and of a conditional the branch that costs most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from attrs import field

from shardy_py.jax.figures.hlo_text import HloTextComputation, HloTextInstruction
from shardy_py.values import define

_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')

Costs = tuple[float, float, float]
"""Operations, transcendental operations and bytes."""


def trip_count(loop: HloTextInstruction) -> int | None:
    """Return the number of iterations of a loop; None where XLA does not know it."""
    match = _TRIPS.search(loop.rest)
    return None if match is None else int(match.group(1))


def runs_of(computations: Mapping[str, HloTextComputation]) -> dict[str, float]:
    """Return the number of runs of each computation that is run by control flow, from the entry on."""
    runs: dict[str, float] = {}

    def visit(computation: HloTextComputation, count: float) -> None:
        runs[computation.name] = runs.get(computation.name, 0.0) + count
        for item in computation.instructions:
            for name, times in _run_by(item):
                visit(computations[name], count * times)

    visit(next(item for item in computations.values() if item.is_entry), 1.0)
    return runs


@define
class LoopWeights:
    """Costs of computations with loops counted as often as they run, and branches equally often.

    Args:
        computations: The computations of the module.
        analyse: Returns XLA's costs of a module's text.
    """

    computations: Mapping[str, HloTextComputation]
    analyse: Callable[[str], Costs]
    _once: dict[str, Costs] = field(factory=dict, init=False)

    def total(self, name: str) -> Costs:
        """Return the costs of a computation."""
        return _sum(self.once(name), self._more(name))

    def once(self, name: str) -> Costs:
        """Return XLA's costs of a computation, which count each loop in it once."""
        if name not in self._once:
            self._once[name] = self.analyse(self._text(name))
        return self._once[name]

    def _more(self, name: str) -> Costs:
        """Return what XLA's costs of a computation leave out."""
        costs: Costs = (0.0, 0.0, 0.0)
        for item in self.computations[name].instructions:
            if item.opcode == "conditional":
                most = map(max, zip(*map(self.once, item.branches), strict=True))
                costs = _sum(costs, _scaled(_as_costs(most), -1))
            for callee, times in _run_by(item):
                if item.opcode == "conditional":
                    costs = _sum(costs, _scaled(self.total(callee), times))
                elif item.opcode == "while":
                    costs = _sum(costs, _scaled(self.total(callee), times), _scaled(self.once(callee), -1))
                else:
                    costs = _sum(costs, _scaled(self._more(callee), times))
        return costs

    def _text(self, name: str) -> str:
        """Return a module whose entry is a computation."""
        needed: set[str] = set()
        pending = [name]
        while pending:
            current = pending.pop()
            if current in needed or current not in self.computations:
                continue
            needed.add(current)
            pending.extend(callee for item in self.computations[current].instructions for callee in item.called)
        others = [item.text for item in self.computations.values() if item.name in needed and item.name != name]
        entry = self.computations[name].text.removeprefix("ENTRY ")
        return "\n\n".join(["HloModule part", *others, f"ENTRY {entry}", ""])


def _run_by(item: HloTextInstruction) -> list[tuple[str, float]]:
    """Return the computations that an instruction runs, with how often each."""
    if item.opcode == "while":
        trips = trip_count(item)
        # An estimate counts both regions of a loop of unknown length once, too.
        body, condition = (1, 1) if trips is None else (trips, trips + 1)
        return [(item.attribute("body"), body), (item.attribute("condition"), condition)]
    if item.opcode == "conditional":
        return [(name, 1 / len(item.branches)) for name in item.branches]
    return [(item.attribute("to_apply"), 1.0)] if item.opcode == "call" else []


def _as_costs(numbers: Iterable[float]) -> Costs:
    flops, transcendentals, moved = numbers
    return flops, transcendentals, moved


def _sum(*costs: Costs) -> Costs:
    first, second, third = zip(*costs, strict=True)
    return sum(first), sum(second), sum(third)


def _scaled(costs: Costs, factor: float) -> Costs:
    return costs[0] * factor, costs[1] * factor, costs[2] * factor
