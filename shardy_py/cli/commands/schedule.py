"""``shardy schedule`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.help import Command
from shardy_py.cli.options import plugin_choice


@click.command(cls=Command)
@click.argument("file", required=False, type=click.Path())
@click.option("--builtin", metavar="NAME", help="A built-in schedule, by its name.")
@click.option("--toml", "as_toml", is_flag=True, help="Print a TOML file that propagate --schedule takes.")
@plugin_choice
def schedule(**options: Any) -> None:
    """Print the order of ops that runs: by default, by the schedule in FILE, or by a built-in one."""
    from shardy_py.cli.schedule import run_schedule

    run_schedule(**options)
