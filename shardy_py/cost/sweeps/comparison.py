"""Comparison of schedules: a table with a row per schedule, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import field

from shardy_py.api.keywords import takes
from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.cost.priced_input import priced_input
from shardy_py.cost.sweeps.evaluator import Setting
from shardy_py.cost.sweeps.named_schedules import Schedules, as_schedules, schedule_of
from shardy_py.cost.sweeps.outcomes import Outcome, RefusedSchedule, Row
from shardy_py.cost.sweeps.random_schedules import choose_schedules
from shardy_py.cost.sweeps.sweep import Progress, Sweep, no_progress, open_program
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.support.arguments import shown
from shardy_py.values import frozen

Measure = Literal["time", "bytes", "memory"]
"""Measure to make small: the estimated time, the bytes that are communicated, the peak memory of a device."""

MEASURES: tuple[Measure, ...] = get_args(Measure)


_MEASURES: dict[Measure, Callable[[Row], float]] = {
    "time": lambda row: row.seconds or 0.0,
    "bytes": lambda row: row.communication_bytes,
    "memory": lambda row: row.peak_bytes,
}


def measure_of(measure: Measure) -> Callable[[Row], float]:
    """Return the function that takes a number from a row.

    Raises:
        OptionError: there is no such measure.
    """
    if not isinstance(measure, str) or measure not in _MEASURES:
        hint = f"use one of {', '.join(MEASURES)}"
        raise OptionError(Diagnostic("unknown-measure", f"there is no measure {shown(measure)}", hint=hint))
    return _MEASURES[measure]


def choose_measure(measure: Measure | None, machine: object | None) -> Measure:
    """Return the measure that a caller wants: by default the time, and without a machine the bytes.

    Raises:
        OptionError: there is no such measure, or no machine that could tell the time.
    """
    if measure is None:
        return "bytes" if machine is None else "time"
    measure_of(measure)
    if measure == "time" and machine is None:
        raise OptionError(Diagnostic("no-machine", "there is no time without a machine", hint="give a machine"))
    return measure


@frozen
class Comparison:
    """The table of a comparison.

    Args:
        rows: The rows, the best first; rows that are equally good are in the order in which they were given.
        first: The name of the schedule that the others are compared with.
        sorted_by: The measure that the rows are sorted by.
        refused: The schedules without a row, in the order in which they were given.
        warnings: What is worth knowing of the program, and the problems of the store that outcomes were taken from.
    """

    rows: tuple[Row, ...]
    first: str
    sorted_by: Measure
    refused: tuple[RefusedSchedule, ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)

    def __str__(self) -> str:
        """Return the rows as a table; a star marks the schedule that the others are compared with."""
        cells = [("schedule", "seconds", "collectives", "bytes sent", "peak bytes", "tensors changed")]
        for row in self.rows:
            name = f"{row.name} *" if row.name == self.first else row.name
            time = "" if row.seconds is None else f"{row.seconds:.3g}"
            sizes = (f"{row.communication_bytes:.0f}", f"{row.peak_bytes:.0f}")
            cells.append((name, time, str(row.num_collectives), *sizes, str(row.values_changed)))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for name, *numbers in cells:
            aligned = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *aligned]))
        return "\n".join([*lines, *(f"{item.name}: refused: {'; '.join(item.problems)}" for item in self.refused)])

    @property
    def best(self) -> Row:
        """The first row.

        Raises:
            OptionError: no schedule has one.
        """
        if not self.rows:
            problems = (Diagnostic("no-result", f"{item.name}: {'; '.join(item.problems)}") for item in self.refused)
            raise OptionError(*problems)
        return self.rows[0]

    def row(self, name: str) -> Row:
        """Return the row of a schedule.

        Raises:
            OptionError: there is none of that name.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise OptionError(Diagnostic("unknown-schedule", f"the comparison has no schedule named {name!r}"))

    def sorted(self, measure: Measure) -> Comparison:
        """Return the same rows in another order."""
        outcomes: tuple[Outcome, ...] = (*self.rows, *self.refused)
        return make_comparison(outcomes, first=self.first, sorted_by=measure, warnings=self.warnings)


def make_comparison(
    outcomes: Iterable[Outcome], *, first: str, sorted_by: Measure = "time", warnings: Iterable[Diagnostic] = ()
) -> Comparison:
    """Return the table of all outcomes.

    Args:
        outcomes: The outcomes of the schedules, in the order in which they were given.
        first: The schedule that the others are compared with.
        sorted_by: The measure that the rows are sorted by.
        warnings: The problems of the store.
    """
    all_outcomes = tuple(outcomes)
    key = measure_of(sorted_by)
    rows = tuple(sorted((item for item in all_outcomes if isinstance(item, Row)), key=key))
    refused = tuple(item for item in all_outcomes if isinstance(item, RefusedSchedule))
    return Comparison(rows, first, sorted_by, refused, tuple(warnings))


@frozen(slots=False)
class SweepArguments(ProgramInput):
    """Arguments of every sweep.

    Args:
        module: The program, in any form that `propagate` takes; or an open `Session`.
        machine: The machine: a `Machine`, the name of one that comes along, or the path of a TOML file;
            without one there are no times.
        axes: The links of the machine that the axes of the mesh run over, where that does not follow from their order.
        layout: The name of a layout policy, to count bytes with padding; None for plain bytes.
        seed: The seed of what is drawn: random schedules, or the optimiser's trials.
        options: How to propagate, and more plugins.
        jobs: How many processes; -1 for one per core.
        store: A file for the outcomes, line by line as they come. What it has already is not evaluated again.
        progress: Called after each schedule.
    """

    machine: MachineLike | None = field(default=None, kw_only=True)
    axes: AxisLinks | None = field(default=None, kw_only=True)
    layout: str | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    options: SessionOptions = field(default=DEFAULT_OPTIONS, kw_only=True)
    jobs: int | None = field(default=None, kw_only=True)
    store: str | Path | None = field(default=None, kw_only=True)
    progress: Progress = field(default=no_progress, kw_only=True)


@frozen(slots=False)
class CompareArguments(SweepArguments):
    """Arguments of `compare_schedules`.

    Args:
        schedules: The schedules, or names to schedules; by default the built-in ones. The others are compared with the
            first.
        random: The number of random schedules to add, see `random_schedules`.
        drop_entries: Whether to add each schedule that is given without each of its entries, one at a time.
        sorted_by: The measure that the table is sorted by: ``time``, ``bytes`` or ``memory``; by default time, and
            bytes where there is no machine.
        jobs: How many processes; -1 for one per core. By default what ``joblib.parallel_config`` says, or one.
    """

    schedules: Schedules | None = None
    # By position the mesh comes after the schedules.
    mesh: Any = None
    random: int = field(default=0, kw_only=True)
    drop_entries: bool = field(default=False, kw_only=True)
    sorted_by: Measure | None = field(default=None, kw_only=True)


@frozen(slots=False)
class SearchArguments(SweepArguments):
    """Arguments of `search_schedule`.

    Args:
        minimise: The measure to make small: ``time``, ``bytes`` or ``memory``; by default time, and bytes where there
            is no machine.
        budget: The number of trials.
        jobs: How many trials to evaluate at once, each in a process; one by default.
    """

    minimise: Measure | None = field(default=None, kw_only=True)
    budget: int = field(default=100, kw_only=True)


@takes(CompareArguments)
def compare_schedules(arguments: CompareArguments) -> Comparison:
    """Compare the results of several schedules.

    Each process prepares and compiles the program once; per schedule it is only solved and finished again. The result
    does not depend on how many processes there are.

    Raises:
        ShardyError: the module or an option is not valid, or the store is of another sweep.
    """
    measure = choose_measure(arguments.sorted_by, arguments.machine)
    session, make_source = open_program(priced_input(arguments, arguments.machine), arguments.options)
    schedules = as_schedules(arguments.schedules)
    chosen = choose_schedules(
        session, schedules, random=arguments.random, seed=arguments.seed, drop_entries=arguments.drop_entries
    )
    items = schedules.values() if isinstance(schedules, Mapping) else schedules or ()
    unknown = session.unknown_op_names(*map(schedule_of, items))
    machine = None if arguments.machine is None else get_machine(arguments.machine)
    sweep = Sweep(session, Setting(chosen[0], machine, arguments.axes, arguments.layout), make_source)
    with nullcontext() if arguments.store is None else sweep.open_store(arguments.store) as opened:
        outcomes = sweep.run(chosen, jobs=arguments.jobs, store=opened, progress=arguments.progress)
    problems = () if opened is None else opened.problems
    return make_comparison(
        outcomes, first=chosen[0].name, sorted_by=measure, warnings=(*session.warnings, *unknown, *problems)
    )
