"""``shardy compare``."""

from __future__ import annotations

import sys
from typing import Any

from shardy_py.api.keywords import keywords
from shardy_py.cli.files import STDOUT, echo_report, print_warnings, write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import progress_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.against_jit import price_against_jit
from shardy_py.cost.commands.against_xla import TIMEOUT
from shardy_py.cost.commands.run_cost import HOST_PROFILE, parse_axis_links
from shardy_py.cost.commands.sweep_progress import default_jobs, joblib_backend, stoppable, sweep_progress
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.report.comparison import comparison_json, print_comparison
from shardy_py.cost.report.plots import draw_comparison, plot_format, require_matplotlib
from shardy_py.cost.sweeps.comparison import Comparison, compare_schedules
from shardy_py.schedule.builtin import BUILTIN


def run_compare(
    *,
    schedules: tuple[str, ...],
    random: int,
    drop_entries: bool,
    seed: int,
    sorted_by: Any,
    limit: int,
    jobs: int | None,
    json_file: str | None,
    plot: str | None,
    save: str | None,
    machine: str | None,
    axes: tuple[str, ...],
    layout: str | None,
    store: str | None,
    backend: str | None,
    against_jit: bool,
    dask_address: str | None,
    **session_options: Any,
) -> None:
    """Compare schedules on one file; write nothing but the store unless all of it succeeded.

    Raises:
        OptionError: no schedule has a result.
    """
    check_plot(plot)
    resolved_machine = None if machine is None else get_machine(machine)
    links = parse_axis_links(axes) or None
    program = GivenProgram.of(**session_options)
    with (
        stoppable(store),
        joblib_backend(backend, dask_address),
        sweep_progress(
            "Comparing", total=None if drop_entries else (len(schedules) or len(BUILTIN)) + random
        ) as progress,
    ):
        comparison = compare_schedules(
            **keywords(program.input),
            schedules=[schedule_argument(item) for item in schedules] or None,
            machine=resolved_machine,
            axes=links,
            layout=layout,
            random=random,
            drop_entries=drop_entries,
            seed=seed,
            options=program.options,
            sorted_by=sorted_by,
            jobs=default_jobs(backend) if jobs is None else jobs,
            store=store,
            progress=progress,
        )
    best = comparison.best
    origin = origin_of(program, without=("jobs", "limit"))
    write_comparison(comparison, origin, json_file=json_file, plot=plot)
    if save is not None:
        write_output(save, best.schedule)
    if json_file != STDOUT:
        print_comparison(comparison, limit=limit, file=sys.stdout)
    if against_jit:
        _print_against_jit(program, comparison, resolved_machine, {"axes": links, "layout": layout})


def _print_against_jit(program: GivenProgram, comparison: Comparison, machine: Any, setting: dict[str, Any]) -> None:
    """Print the best order beside the program of `jax.jit`: what both cost, and the first op that differs."""
    schedule = comparison.best.parsed_schedule()
    setting = {**setting, "profile": None if machine is not None else HOST_PROFILE}
    cost = program.open().evaluate(schedule, machine, partitioner="xla", **setting).cost
    with progress_bar("") as show:
        priced = price_against_jit(program, schedule, cost, machine, setting, timeout=TIMEOUT, show=show)
    echo_report(str(priced))


def check_plot(plot: str | None) -> None:
    """Check that a picture can be drawn, before the work begins.

    Raises:
        OptionError: the format is unknown, or matplotlib is missing.
    """
    if plot is not None:
        plot_format(plot)
        require_matplotlib()


def write_comparison(
    comparison: Comparison, origin: dict[str, Any], *, json_file: str | None, plot: str | None
) -> None:
    """Write a comparison with its origin to the files that were asked for, and its warnings to stderr."""
    print_warnings(comparison.warnings)
    if plot is not None:
        write_output(plot, draw_comparison(comparison, plot_format(plot)))
    if json_file is not None:
        write_output(json_file, f"{comparison_json(comparison, origin)}\n")
