"""``shardy diff``."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import excludes_option
from shardy_py.cli.options import session_options
from shardy_py.errors import Diagnostic, OptionError


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A TOML file, or the name of a built-in schedule. Twice, or once to compare with the default.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0), help="Tensors to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
@excludes_option("--json", "as_json", "limit")
def diff(*, schedules: tuple[str, ...], limit: int, as_json: bool, **session_options: Any) -> None:
    """Show where the runs of two schedules over FILE (- for stdin) part, and what differs in the end."""
    from shardy_py.cli.files import echo_report, print_warnings
    from shardy_py.cli.origin import origin_of
    from shardy_py.cli.progress import step_bar
    from shardy_py.cli.registry import schedule_argument
    from shardy_py.cli.session import GivenProgram
    from shardy_py.cost.sweeps.random_schedules import choose_schedules
    from shardy_py.explain.diff import diff_schedules
    from shardy_py.explain.reports import diff_json, format_diff

    names = ("default", *schedules) if len(schedules) == 1 else schedules
    if len(names) != 2:
        message = f"{len(names)} schedules are given"
        raise OptionError(Diagnostic("two-schedules", message, hint="give two, or one to compare with the default"))
    program = GivenProgram.of(**session_options)
    with step_bar(2) as steps:
        steps.start("Reading the module, and preparing")
        session = program.open(keep_names=True)
        chosen = [schedule_argument(name) for name in names]
        first, second = choose_schedules(session, chosen)
        steps.start("Propagating under both schedules")
        difference = diff_schedules(session, first, second)
    warnings = (*session.warnings, *session.unknown_op_names(*chosen))
    print_warnings(warnings)
    if as_json:
        click.echo(diff_json(difference, origin=origin_of(program, without=("limit",)), warnings=warnings))
    else:
        echo_report(format_diff(difference, limit=limit))
