"""``shardy propagate`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs
from shardy_py.cli.options import FORMS, LAYOUTS, propagate_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write the module here, not to stdout.")
@click.option("--for", "target", type=click.Choice(FORMS), help="Write the module in the form a compiler takes.")
@click.option("--stubs", metavar="OUT", type=click.Path(), help="Write a plugin with a stub for each missing rule.")
@click.option("--plan", metavar="OUT", type=click.Path(), help="Write the parallel plan of a PyTorch program as JSON.")
@click.option("--graph", metavar="OUT", type=click.Path(), help="Write the def-use graph: .graphml or .json.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Report the bytes on a device with these layouts.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout; the module with -o only.")
@click.option("-q", "--quiet", is_flag=True, help="Print no table.")
@propagate_options
@needs(
    "target",
    when=lambda values: not values["as_json"] or values["output"] is not None,
    problem="with --json, which prints no module",
    hint="write the module with -o OUT",
)
@needs(
    "layout",
    "record_copies",
    when=lambda values: not values["quiet"] or values["as_json"],
    problem="with --quiet, which prints no report",
    hint="leave one of the two out, or give --json",
)
def propagate(**options: Any) -> None:
    """Propagate shardings through the module in FILE (- for stdin).

    The module goes to stdout or OUT, the table to stderr.
    """
    from shardy_py.cli.propagate import run_propagate

    run_propagate(**options)
