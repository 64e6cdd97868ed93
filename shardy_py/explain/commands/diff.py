"""``shardy diff`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.help import Command
from shardy_py.cli.needs import excludes_option
from shardy_py.cli.options import session_options


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
def diff(**options: Any) -> None:
    """Show where the runs of two schedules over FILE (- for stdin) part, and what differs in the end."""
    from shardy_py.explain.commands.run_diff import run_diff

    run_diff(**options)
