"""``shardy compare`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs, needs_option
from shardy_py.cli.options import MEASURES, sweep_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    metavar="FILE",
    help="A TOML file, or the name of a built-in schedule; all built-in ones by default. May be repeated.",
)
@click.option("--random", default=0, type=click.IntRange(min=0), help="So many random schedules besides.")
@click.option("--drop-entries", is_flag=True, help="Each schedule without each of its entries, one at a time, besides.")
@click.option("--seed", default=0, show_default=True, help="What they are drawn from.")
@click.option("--sort", "sorted_by", type=click.Choice(MEASURES), help="By default time, or bytes without a machine.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Rows to print.")
@click.option("--jobs", type=click.IntRange(min=-1), help="Processes; by default one per core.")
@click.option("--json", "json_file", metavar="OUT", type=click.Path(), help="Write all rows as JSON; - for stdout.")
@click.option("--plot", metavar="OUT", type=click.Path(), help="Draw a picture, .png or .svg.")
@click.option("--save", metavar="OUT", type=click.Path(), help="Write the best schedule as a TOML file.")
@click.option("--against-jit", is_flag=True, help="Compile as jax.jit does; print how the best schedule differs.")
@sweep_options
@needs_option("--random", "random", "seed")
@needs(
    "limit",
    when=lambda values: values["json_file"] != "-",
    problem="with --json -, which prints all rows and no table",
    hint="leave one of the two out",
)
@needs_option("--machine", "machine", "axes")
def compare(**options: Any) -> None:
    """Compare what schedules lead to for the module in FILE (- for stdin), and what that costs."""
    from shardy_py.cost.commands.run_compare import run_compare

    run_compare(**options)
