"""The commands of ``shardy`` about schedules."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.options import session_options, sweep_options

_MEASURES = ("time", "bytes", "memory")


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    metavar="FILE",
    help="A TOML file, or the name of a built-in schedule; all built-in ones by default. May be repeated.",
)
@click.option("--random", default=0, type=click.IntRange(min=0), help="So many random schedules besides.")
@click.option("--seed", default=0, show_default=True, help="What they are drawn from.")
@click.option("--sort", "sorted_by", type=click.Choice(_MEASURES), help="By default time, or bytes without a machine.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Rows to print.")
@click.option("--jobs", type=click.IntRange(min=-1), help="Processes; by default one per core.")
@click.option("--json", "json_file", metavar="OUT", type=click.Path(), help="Write all rows as JSON; - for stdout.")
@click.option("--plot", metavar="OUT", type=click.Path(), help="Draw a picture, .png or .svg.")
@click.option("--save", metavar="OUT", type=click.Path(), help="Write the best schedule as a TOML file.")
@sweep_options
def compare(**options: Any) -> None:
    """Compare what schedules lead to for the module in FILE (- for stdin), and what that costs."""
    from shardy_py.cli.compare import run_compare

    run_compare(**options)


@click.command()
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
def diff(**options: Any) -> None:
    """Show where the runs of two schedules over FILE (- for stdin) part, and what differs in the end."""
    from shardy_py.cli.diff import run_diff

    run_diff(**options)


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--minimise", type=click.Choice(_MEASURES), help="By default time, or bytes without a machine.")
@click.option("--budget", default=100, show_default=True, type=click.IntRange(min=1), help="Schedules to try.")
@click.option("--seed", default=0, show_default=True, help="What the optimiser draws from.")
@click.option("-o", "--out", metavar="OUT", type=click.Path(), help="Write the best schedule here, not to stdout.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(min=1), help="Rows to print.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=-1), help="Schedules tried at once.")
@click.option("--json", "json_file", metavar="OUT", type=click.Path(), help="Write all trials as JSON.")
@click.option("--plot", metavar="OUT", type=click.Path(), help="Draw a picture, .png or .svg.")
@sweep_options
def search(**options: Any) -> None:
    """Search for a schedule that costs little for the module in FILE (- for stdin)."""
    from shardy_py.cli.search import run_search

    run_search(**options)


ORDERING_COMMANDS = (compare, diff, search)
