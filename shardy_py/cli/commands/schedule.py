"""``shardy schedule``."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import plugin_choice
from shardy_py.errors import Diagnostic, OptionError


@click.command(cls=Command)
@click.argument("file", required=False, type=click.Path())
@click.option("--builtin", metavar="NAME", help="A built-in schedule, by its name.")
@click.option("--toml", "as_toml", is_flag=True, help="Print a TOML file that propagate --schedule takes.")
@plugin_choice
def schedule(*, file: str | None, builtin: str | None, as_toml: bool, **registry_options: Any) -> None:
    """Print the order of ops that runs: by default, by the schedule in FILE, or by a built-in one."""
    from shardy_py.cli.files import echo_report
    from shardy_py.cli.registry import plugin_registry, schedule_argument
    from shardy_py.schedule.from_options import make_schedule
    from shardy_py.schedule.toml import format_schedule

    if file is not None and builtin is not None:
        message = "a file and --builtin exclude each other"
        raise OptionError(Diagnostic("option-conflict", message, hint="a file can go on with a built-in one by then"))
    registry = plugin_registry(**registry_options)
    argument = schedule_argument(file) if file is not None else builtin
    levels = make_schedule(argument, plugin_priorities=registry.priorities, plugin_traits=registry.trait_names)
    if as_toml:
        click.echo(format_schedule(levels), nl=False)
    else:
        echo_report(str(levels))
