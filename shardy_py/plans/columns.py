"""The columns and rows of a plan: a choice per strategy, flows of tensors, and the memory where it is limited."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import Any

from attrs import field

from shardy_py.plans.flows import TensorFlows
from shardy_py.plans.memory import PlanMemory
from shardy_py.plans.model import Choice, PlanModel
from shardy_py.plans.solve import LinearProgram, Solved, numpy
from shardy_py.plans.strategies import numbers_of, row_of
from shardy_py.values import define

_TOLERANCE = 1e-6
_UNITS = 100
"""The least time of all kernels, in units of the linear program."""


@define(eq=False)
class PlanSolution:
    """A choice, the seconds that no choice can be below, and the bytes of the choice at its peak, where they count."""

    choice: Choice
    bound: float
    memory: float = 0.0


@define(eq=False)
class PlanColumns:
    """The linear program of a model.

    Attributes:
        model: The model.
        program: The linear program.
        memory: The memory of the plan, if it is limited or to become small.
        choices: Node to the columns of its strategies.
    """

    model: PlanModel
    program: LinearProgram = field(factory=LinearProgram)
    memory: PlanMemory | None = None
    choices: dict[int, list[int]] = field(factory=dict)
    _flows: list[TensorFlows] = field(factory=list)

    @classmethod
    def of(cls, model: PlanModel, *, has_memory: bool = False) -> PlanColumns:
        """Return the columns of a model.

        Args:
            model: The model.
            has_memory: Whether memory is limited, or to become small.
        """
        columns = cls(model)
        least = sum(float(seconds.min(initial=inf)) for seconds in model.seconds.values())
        if 0 < least < inf:
            columns.program.unit = least / _UNITS
        columns._add_choices()
        for tensor in model.tensors:
            uses = [(columns._grouped(use.leader, use.needs), use) for use in tensor.uses]
            producer = columns._grouped(tensor.leader, tensor.gives)
            # By strict prices a device may send again what it has dropped.
            keeps_copies = has_memory and not model.prices.is_strict
            flows = TensorFlows.of(columns.program, model.times, tensor, producer, uses, keeps_copies=keeps_copies)
            columns._flows.append(flows)
        columns._add_equal()
        if has_memory:
            columns.memory = PlanMemory.of(model, columns.program, columns.choices, columns._flows)
        return columns

    def solve(self) -> PlanSolution | None:
        """Return the cheapest choice; None where the rows contradict each other."""
        solved = self._relaxed()
        if solved is None:
            return None
        bound = solved.bound
        if not self.is_integral(solved):
            integral = self.program.whole()
            if integral is None or not self.fits(integral):
                return None
            solved, bound = integral, max(bound, integral.bound)
        return PlanSolution(self.choice(solved), bound, 0.0 if self.memory is None else self.memory.largest(solved))

    def forbid(self, choice: Choice) -> None:
        """Forbid the placements of the arguments of a choice, all together."""
        leaders = [number for number in self.choices if self.model.graph.nodes[number].op is None]
        row = self.program.row(-inf, len(leaders) - 1.0)
        for number in leaders:
            is_out = (self.model.strategies[number].outs == row_of(choice[number].out)).all(axis=1)
            for position in numpy().flatnonzero(is_out).tolist():
                self.program.enter(row, self.choices[number][position], 1.0)

    def limit_memory(self, size: float) -> None:
        """Let no device use more bytes; memory was asked for."""
        assert self.memory is not None
        self.memory.limit(size)

    def least_memory(self) -> tuple[Choice, float] | None:
        """Return the choice with the smallest memory, and that memory in bytes.

        The objective of the linear program is the memory from then on, and no longer the time.
        """
        assert self.memory is not None
        self.program.costs = [0.0] * len(self.program.costs)
        for flows in self._flows:
            flows.make_free()
        self.program.costs[self.memory.column] = self.program.unit
        self.program.upper[self.memory.excess] = 0.0
        solved = self._relaxed()
        if solved is None:
            return None
        return self.choice(solved), solved.seconds / self.program.unit * self.memory.unit

    def is_integral(self, solved: Solved) -> bool:
        """Return whether a solution chooses one strategy of each node."""
        chosen = solved.columns[numpy().array(self.program.is_choice)]
        return bool(numpy().abs(chosen - chosen.round()).max(initial=0.0) <= _TOLERANCE)

    def choice(self, solved: Solved) -> Choice:
        """Return the strategies that a solution chooses, of fractions the largest."""
        return self.model.choice(
            {
                number: max(range(len(columns)), key=lambda position: solved.columns[columns[position]])
                for number, columns in self.choices.items()
            }
        )

    def fits(self, solved: Solved) -> bool:
        """Return whether a solution meets the limit of memory, if there is one."""
        return self.memory is None or self.memory.fits(solved)

    def _relaxed(self) -> Solved | None:
        """Return the best columns of all flows and points of time, also of those that were not added."""
        while True:
            solved = self.program.relaxed()
            if solved is None:
                return None
            prices = {} if self.memory is None else self.memory.prices(solved)
            added = 0 if self.memory is None else self.memory.add_exceeded(solved)
            added += sum(flows.add_cheaper(solved.rows, prices) for flows in self._flows)
            if self.memory is not None:
                self.memory.enter_copies()
            if not added:
                return solved if self.fits(solved) else None

    def _add_choices(self) -> None:
        for number, seconds in self.model.seconds.items():
            columns = self.choices[number] = [self.program.column(float(cost), is_choice=True) for cost in seconds]
            row = self.program.row(1.0, 1.0)
            for column in columns:
                self.program.enter(row, column, 1.0)

    def _grouped(self, leader: int, placements: Any) -> dict[int, list[int]]:
        """Return the columns of a node's choices by placement."""
        groups: dict[int, list[int]] = defaultdict(list)
        for column, placement in zip(self.choices[leader], placements.tolist(), strict=True):
            groups[placement].append(column)
        return groups

    def _add_equal(self) -> None:
        for first, second in self.model.equal:
            rank = len(self.model.graph.shape(self.model.graph.nodes[first].results[0]))
            groups = [
                self._grouped(node, numbers_of(self.model.strategies[node].outs, rank)) for node in (first, second)
            ]
            for placement in dict.fromkeys([*groups[0], *groups[1]]):
                row = self.program.row(0.0, 0.0)
                for column in groups[0].get(placement, []):
                    self.program.enter(row, column, 1.0)
                for column in groups[1].get(placement, []):
                    self.program.enter(row, column, -1.0)
