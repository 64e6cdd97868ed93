"""``shardy search``."""

from __future__ import annotations

import sys
from typing import Any

import click

from shardy_py.api.keywords import keywords
from shardy_py.cli.files import STDOUT, write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.run_compare import check_plot, write_comparison
from shardy_py.cost.commands.run_cost import parse_axis_links
from shardy_py.cost.commands.sweep_progress import joblib_backend, stoppable, sweep_progress
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.report.comparison import print_comparison
from shardy_py.cost.report.plots import draw_search, plot_format
from shardy_py.cost.sweeps.search import require_optuna, search_schedule


def run_search(
    *,
    minimise: Any,
    budget: int,
    seed: int,
    out: str | None,
    limit: int,
    jobs: int,
    json_file: str | None,
    plot: str | None,
    machine: str | None,
    axes: tuple[str, ...],
    layout: str | None,
    store: str | None,
    backend: str | None,
    dask_address: str | None,
    **session_options: Any,
) -> None:
    """Search on one file; the table goes to stderr where the schedule goes to stdout."""
    require_optuna()
    check_plot(plot)
    resolved_machine = None if machine is None else get_machine(machine)
    links = parse_axis_links(axes) or None
    program = GivenProgram.of(**session_options)
    with (
        stoppable(store),
        joblib_backend(backend, dask_address),
        sweep_progress("Searching", total=budget) as progress,
    ):
        result = search_schedule(
            **keywords(program.input),
            machine=resolved_machine,
            axes=links,
            layout=layout,
            minimise=minimise,
            budget=budget,
            seed=seed,
            options=program.options,
            jobs=None if backend is not None and jobs == 1 else jobs,
            store=store,
            progress=progress,
        )
    write_comparison(result.comparison, origin_of(program, without=("limit",)), json_file=json_file, plot=None)
    if plot is not None:
        write_output(plot, draw_search(result, plot_format(plot)))
    if out is not None:
        write_output(out, result.best.schedule)
    elif json_file != STDOUT:
        click.echo(result.best.schedule, nl=False)
    print_comparison(result.comparison, limit=limit, file=sys.stderr)
