"""Arguments of the functions that evaluate many schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import field

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.cost.machines.placement import AxisLinks
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.cost.sweeps.comparison import Measure
from shardy_py.cost.sweeps.named_schedules import Schedules
from shardy_py.cost.sweeps.sweep import Progress, no_progress
from shardy_py.values import frozen


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
