"""``shardy study``."""

from __future__ import annotations

from pathlib import Path

import click

from shardy_py.cli.files import print_warnings, write_output
from shardy_py.cost.commands.sweep_progress import default_jobs, joblib_backend, stoppable, sweep_progress
from shardy_py.cost.report.study_plot import draw_study, study_plot_format
from shardy_py.cost.studies.run import run_study
from shardy_py.cost.studies.settings import read_study
from shardy_py.cost.studies.table import FORMATS
from shardy_py.errors import Diagnostic, OptionError


def run_study_command(
    *,
    file: str,
    outputs: tuple[str, ...],
    plot: str | None,
    store: str | None,
    jobs: int | None,
    backend: str | None,
    dask_address: str | None,
) -> None:
    """Run a study and write its table; write nothing but the stores unless all of it succeeded."""
    formats = [_format(output) for output in outputs]
    plot_format = None if plot is None else study_plot_format(plot)
    study, folder = read_study(file), store or f"{Path(file).with_suffix('')}.study"
    with stoppable(folder), joblib_backend(backend, dask_address), sweep_progress("Studying") as progress:
        table = run_study(study, folder, jobs=default_jobs(backend) if jobs is None else jobs, progress=progress)
    print_warnings(table.warnings)
    for output, table_format in zip(outputs, formats, strict=True):
        write_output(output, table.write(table_format))
    if plot is not None and plot_format is not None:
        write_output(plot, draw_study(table, plot_format))
    if not outputs:
        click.echo(table.write("csv"), nl=False)


def _format(output: str) -> str:
    """Return the format that the suffix of a file asks for.

    Raises:
        OptionError: it is none of a table.
    """
    suffix = Path(output).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        message = f"{output}: there is no table of the format {suffix!r}"
        raise OptionError(Diagnostic("unknown-format", message, hint="end the name in .csv, .json, .tex or .parquet"))
    return suffix
