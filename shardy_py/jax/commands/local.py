"""``shardy local`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs, needs_option
from shardy_py.cli.options import LAYOUTS, RANDOM_INPUTS, local_options, run_options, schedule_option, session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write the module here, not to stdout.")
@click.option("--device", metavar="N", type=click.IntRange(min=0), help="The program of this device, its number in it.")
@local_options
@click.option("--run", "as_run", is_flag=True, help="Run it on host devices; print the results, not the module.")
@run_options("the global arguments", "run one device, too", "With --run, ")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Report the bytes of shards with these layouts.")
@schedule_option()
@click.option("--json", "as_json", is_flag=True, help="Print the shards and collectives, or the run, as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print no table.")
@session_options
@needs_option("--run", "as_run", "inputs", "seed", "compare", "tolerance", "outputs")
@needs_option("--compare", "compare", "tolerance")
@needs(
    "seed",
    when=lambda options: options["inputs"] == RANDOM_INPUTS,
    problem="on inputs of a file",
    hint="leave --seed or --inputs out",
)
@needs(
    "layout",
    when=lambda options: not options["as_run"] and (options["as_json"] or not options["quiet"]),
    problem="where no shards are reported",
    hint="leave --run or --quiet out",
)
@needs(
    "device",
    when=lambda options: not options["as_json"] or options["output"] is not None,
    problem="with --json, which prints no module",
    hint="write the module with -o OUT",
)
def local(**options: Any) -> None:
    """Write the program that each device runs for the module in FILE (- for stdin).

    The module goes to stdout or OUT, the shards and the collectives to stderr.
    """
    from shardy_py.jax.commands.run_local import run_local_command

    run_local_command(**options)
