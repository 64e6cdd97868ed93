"""``shardy diff``."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.diagnostics import print_warnings
from shardy_py.cli.lines import echo_report
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import step_bar
from shardy_py.cli.schedule import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.sweeps.random_schedules import choose_schedules
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.diff import diff_schedules
from shardy_py.explain.report.diff import diff_json, format_diff


def run_diff(*, schedules: tuple[str, ...], limit: int, as_json: bool, **session_options: Any) -> None:
    """Print where two runs part."""
    given = ("default", *schedules) if len(schedules) == 1 else schedules
    if len(given) != 2:
        message = f"{len(given)} schedules are given"
        raise OptionError(Diagnostic("two-schedules", message, hint="give two, or one to compare with the default"))
    program = GivenProgram.of(**session_options)
    with step_bar(2) as steps:
        steps.start("Reading the module, and preparing")
        session = program.open(keep_names=True)
        chosen = [schedule_argument(item) for item in given]
        first, second = choose_schedules(session, chosen)
        steps.start("Propagating under both schedules")
        diff = diff_schedules(session, first, second)
    warnings = (*session.warnings, *session.unknown_op_names(*chosen))
    print_warnings(warnings)
    if as_json:
        click.echo(diff_json(diff, origin=origin_of(program, without=("limit",)), warnings=warnings))
    else:
        echo_report(format_diff(diff, limit=limit))
