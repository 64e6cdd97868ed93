"""``shardy search`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs_option
from shardy_py.cli.options import MEASURES, sweep_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--minimise", type=click.Choice(MEASURES), help="By default time, or bytes without a machine.")
@click.option("--budget", default=100, show_default=True, type=click.IntRange(min=1), help="Schedules to try.")
@click.option("--seed", default=0, show_default=True, help="What the optimiser draws from.")
@click.option("-o", "--out", metavar="OUT", type=click.Path(), help="Write the best schedule here, not to stdout.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(min=1), help="Rows to print.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=-1), help="Schedules tried at once.")
@click.option("--json", "json_file", metavar="OUT", type=click.Path(), help="Write all trials as JSON.")
@click.option("--plot", metavar="OUT", type=click.Path(), help="Draw a picture, .png or .svg.")
@sweep_options
@needs_option("--machine", "machine", "axes")
def search(**options: Any) -> None:
    """Search for a schedule that costs little for the module in FILE (- for stdin)."""
    from shardy_py.cost.commands.run_search import run_search

    run_search(**options)
