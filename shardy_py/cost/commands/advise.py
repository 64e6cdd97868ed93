"""``shardy advise`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import excludes_option, needs_option
from shardy_py.cli.options import MEASURES, axis_option, schedule_option, session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--machine", metavar="NAME|FILE", help="What the program runs on; without, there are no times.")
@axis_option()
@schedule_option()
@click.option("--minimise", type=click.Choice(MEASURES), help="By default time, or bytes without a machine.")
@click.option("--budget-memory", metavar="SIZE", help="What a device may use: 16GiB, 500MB; else what it has.")
@click.option("--trials", default=200, show_default=True, type=click.IntRange(min=1), help="Outcomes to price.")
@click.option("--inputs", is_flag=True, help="Advise shardings of the arguments: a plan, and known layouts.")
@click.option("--limit", default=4, show_default=True, type=click.IntRange(min=1), help="Constraints in the set.")
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write the program with the advice.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
@excludes_option("--inputs", "inputs", "limit", "trials", "schedule", "axes")
@needs_option("--machine", "machine", "axes", "inputs")
def advise(**options: Any) -> None:
    """Advise constraints, or shardings of inputs, that make the program in FILE (- for stdin) cheaper."""
    from shardy_py.cost.commands.run_advise import run_advise

    run_advise(**options)
