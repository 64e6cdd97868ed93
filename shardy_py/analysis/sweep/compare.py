"""Comparison of schedules: the shardings of each, and their cost."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from shardy_py.analysis.machine.placement import AxisLinks
from shardy_py.analysis.machine.toml import MachineLike, get_machine
from shardy_py.analysis.sweep.comparison import Comparison, Measure, choose_measure, make_comparison
from shardy_py.analysis.sweep.evaluator import Setting
from shardy_py.analysis.sweep.named_schedules import NamedSchedule
from shardy_py.analysis.sweep.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.analysis.sweep.random_schedules import choose_schedules
from shardy_py.analysis.sweep.sweep import Progress, Sweep, no_progress, open_program
from shardy_py.api.given_shardings import InShardings, OutShardings
from shardy_py.arguments import checked
from shardy_py.schedule.given import ScheduleLike


@checked
def compare_schedules(
    module: Any,
    schedules: Iterable[ScheduleLike | NamedSchedule] | None = None,
    mesh: Any = None,
    *,
    machine: MachineLike | None = None,
    axes: AxisLinks | None = None,
    layout: str | None = None,
    random: int = 0,
    seed: int = 0,
    in_shardings: InShardings | None = None,
    out_shardings: OutShardings | None = None,
    options: SessionOptions = DEFAULT_OPTIONS,
    sorted_by: Measure | None = None,
    jobs: int | None = None,
    store: str | Path | None = None,
    progress: Progress = no_progress,
) -> Comparison:
    """Compare the results of several schedules.

    Each process prepares and compiles the program once; per schedule it is only solved and finished again. The result
    does not depend on how many processes there are.

    Args:
        module: The program, in any form that `propagate` takes; or an open `Session`.
        schedules: The schedules; by default the built-in ones. The others are compared with the first.
        mesh: For a module without a mesh, as for `propagate`.
        machine: The machine: a `Machine`, the name of one that comes along, or the path of a TOML file;
            without one there are no times.
        axes: The links of the machine that the axes of the mesh run over, where that does not follow from their order.
        layout: The name of a layout policy, to count bytes with padding; None for plain bytes.
        random: The number of random schedules to add, see `random_schedules`.
        seed: The seed that they are drawn from.
        in_shardings: Shardings of arguments, as for `propagate`.
        out_shardings: Shardings of results, as for `propagate`.
        options: How to propagate, and more plugins.
        sorted_by: The measure that the table is sorted by: ``time``, ``bytes`` or ``memory``; by default time, and
            bytes where there is no machine.
        jobs: How many processes; -1 for one per core. By default what ``joblib.parallel_config`` says, or one.
        store: A file for the outcomes, line by line as they come. What it has already is not evaluated again.
        progress: Called after each schedule.

    Raises:
        ShardyError: the module or an option is not valid, or the store is of another sweep.
    """
    measure = choose_measure(sorted_by, machine)
    session, make_source = open_program(
        module, mesh, in_shardings=in_shardings, out_shardings=out_shardings, options=options
    )
    chosen = choose_schedules(session, schedules, random=random, seed=seed)
    known = None if machine is None else get_machine(machine)
    sweep = Sweep(session, Setting(chosen[0], known, axes, layout), make_source)
    with nullcontext() if store is None else sweep.open_store(store) as opened:
        outcomes = sweep.run(chosen, jobs=jobs, store=opened, progress=progress)
    warnings = () if opened is None else opened.problems
    return make_comparison(outcomes, first=chosen[0].name, sorted_by=measure, warnings=warnings)
