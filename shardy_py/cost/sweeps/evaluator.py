"""Evaluation of a schedule: solve, finish, estimate."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256

from attrs import evolve, field

from shardy_py.api.program_source import ProgramSource
from shardy_py.cost.finishing import changed_slots
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.session import Evaluation, Session
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.cost.sweeps.outcomes import Collectives, Outcome, RefusedSchedule, Row
from shardy_py.errors import OptionError, ShardyError
from shardy_py.propagation.solve import Solution
from shardy_py.support.gc_pause import no_garbage_collection
from shardy_py.values import define, frozen


@frozen
class Setting:
    """Conditions under which schedules are evaluated.

    Args:
        first: The schedule that the others are compared with.
        machine: The machine of the program; None for no times.
        axes: The links of the machine that the axes of the mesh run over, where that does not follow from their order.
        layout: The name of a layout policy, to count bytes with padding; None for plain bytes.
    """

    first: NamedSchedule
    machine: Machine | None = None
    axes: AxisLinks | None = field(default=None, hash=False)
    layout: str | None = None


@define(frozen=True, eq=False, slots=False)
class SessionEvaluator:
    """Evaluates schedules on an open session.

    Many schedules lead to the same shardings; these are finished and priced once.

    Args:
        session: The program.
        setting: The conditions.
    """

    session: Session
    setting: Setting
    _known: dict[str, Outcome] = field(factory=dict, init=False)
    _texts: dict[int, bytes] = field(factory=dict, init=False)
    _last: dict[str, tuple[str, Solution]] = field(factory=dict, init=False)

    @cached_property
    def first_solution(self) -> Solution:
        """The solution that the others are compared with."""
        return self.session.solve(self.setting.first.schedule)

    def key(self, schedule: NamedSchedule) -> str:
        """Return a digest of the shardings to which a schedule leads."""
        with no_garbage_collection():
            return self._solve(schedule)[0]

    def __call__(self, schedule: NamedSchedule) -> Outcome:
        """Return the outcome of a schedule: its row, or its refusal.

        Raises:
            OptionError: the setting does not fit the program, whatever the schedule.
        """
        # One pause for all stages: at its end the finished program is garbage, which is found before it grows old.
        with no_garbage_collection():
            key, solution = self._solve(schedule)
            outcome = self._known.get(key)
            if outcome is None:
                outcome = self._known[key] = self._price(solution)
        return evolve(outcome, name=schedule.name, schedule=schedule.text)

    def _solve(self, schedule: NamedSchedule) -> tuple[str, Solution]:
        """Return the solution of a schedule with its key; the one of the last schedule is cached."""
        keyed_solution = self._last.get(schedule.text)
        if keyed_solution is None:
            solution = self.session.solve(schedule.schedule)
            keyed_solution = self._digest(solution), solution
            self._last.clear()
            self._last[schedule.text] = keyed_solution
        return keyed_solution

    def _digest(self, solution: Solution) -> str:
        """Return a digest of shardings that is equal in all processes, where their numbers differ."""
        values, texts = solution.problem.table.values, self._texts
        for number in set(solution.shardings).difference(texts):
            texts[number] = sha256(str(values[number]).encode()).digest()
        return sha256(b"".join([texts[number] for number in solution.shardings])).hexdigest()

    def _price(self, solution: Solution) -> Outcome:
        """Return the outcome of a solution, without the name of a schedule."""
        setting = self.setting
        try:
            evaluation = self.session.price(solution, setting.machine, axes=setting.axes, layout=setting.layout)
        except OptionError:
            raise
        except ShardyError as error:
            return RefusedSchedule("", "", tuple(str(item) for item in error.diagnostics))
        return _row(evaluation, len(changed_slots(self.first_solution, solution)))


def _row(evaluation: Evaluation, changed: int) -> Row:
    cost = evaluation.cost
    return Row(
        name="",
        schedule="",
        values_changed=changed,
        collectives=[Collectives(item.kind, item.count, item.bytes) for item in cost.kinds],
        communication_bytes=cost.communication_bytes.value or 0,
        communication_seconds=cost.communication_seconds.value,
        compute_seconds=cost.compute_seconds.value,
        seconds=cost.seconds.value,
        peak_bytes=cost.peak_bytes.value or 0,
        flops=cost.flops.value or 0,
        balance=cost.balance.value,
    )


@frozen
class EvaluatorSource:
    """Source from which another process opens its evaluator.

    Args:
        program: The program.
        setting: The conditions of the evaluation.
    """

    program: ProgramSource
    setting: Setting

    @property
    def key(self) -> str:
        """A text that is equal for equal sources."""
        return sha256(f"{self.program.key} {self.setting!r}".encode()).hexdigest()

    def open(self) -> SessionEvaluator:
        """Open the program."""
        return SessionEvaluator(self.program.open(), self.setting)
