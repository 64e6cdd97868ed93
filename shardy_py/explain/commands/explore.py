"""``shardy explore`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs_option
from shardy_py.cli.options import schedule_option, session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="The page, one HTML file.")
@click.option("--model-explorer", metavar="DIR", type=click.Path(), help="Write files for Model Explorer.")
@schedule_option()
@click.option("--against", metavar="FILE", help="Another order to show beside: a TOML file, or a built-in schedule.")
@click.option(
    "--against-module",
    "variants",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="The program with other shardings to show beside, as shardy plan --form mlir writes it. May be repeated.",
)
@click.option("--sweep", is_flag=True, help="Show what all built-in schedules cost, too.")
@click.option("--random", default=0, type=click.IntRange(min=0), help="With --sweep, so many random schedules besides.")
@click.option(
    "--proposals", default=3, show_default=True, type=click.IntRange(min=0), help="Transfers to find proposals for."
)
@click.option("--machine", metavar="NAME|FILE", help="What the program runs on; without, there are no times.")
@session_options
@needs_option("--output", "output", "against", "variants", "sweep", "random", "proposals")
@needs_option("--sweep", "sweep", "random")
def explore(**options: Any) -> None:
    """Write a page that shows the program in FILE (- for stdin): shardings, reasons, costs."""
    from shardy_py.explain.commands.run_explore import run_explore

    run_explore(**options)
