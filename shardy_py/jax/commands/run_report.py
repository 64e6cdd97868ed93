"""The inputs of a run, and its report, for all commands that run programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.options import RANDOM_INPUTS
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.report.running import print_run, run_json
from shardy_py.jax.run_report import RunReport


def inputs_path(inputs: str) -> Path | None:
    """Return the file with the inputs, None for random ones.

    Raises:
        OptionError: there is no such file.
    """
    if inputs == RANDOM_INPUTS:
        return None
    path = Path(inputs)
    if not path.is_file():
        message = f"--inputs {inputs}: {'this is no file' if path.exists() else 'there is no such file'}"
        raise OptionError(Diagnostic("no-inputs", message, hint="give --inputs random, or a file of numpy.savez"))
    return path


def show_report(
    report: RunReport, *, origin: Mapping[str, Any], warnings: Iterable[Diagnostic] = (), as_json: bool
) -> int:
    """Print the report of a run to stdout, and return the exit code: 1 where a comparison fails."""
    if as_json:
        click.echo(run_json(report, origin=origin, warnings=warnings))
    else:
        print_run(report, file=sys.stdout)
    return 0 if report.is_within else 1
