"""``shardy plan`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--machine", required=True, metavar="NAME|FILE", help="What the program runs on.")
@click.option("--minimise", default="time", show_default=True, type=click.Choice(["time", "memory"]))
@click.option("--budget-memory", metavar="SIZE", help="What a device may use: 16GiB, 500MB.")
@click.option("--fix", "fixed", multiple=True, metavar="ARG=SPEC", help="A sharding that the plan has to keep.")
@click.option(
    "--results",
    default="like-arguments",
    show_default=True,
    type=click.Choice(["like-arguments", "open"]),
    help="Whether results that are the next state of arguments have their shardings.",
)
@click.option("--gap", default=0.5, show_default=True, type=click.FloatRange(min=0), help="The gap to stop at, in %.")
@click.option(
    "--known-layouts/--no-known-layouts",
    default=None,
    help="Price known layouts beside it; by default for up to a thousand ops.",
)
@click.option(
    "--form",
    type=click.Choice(["jax", "propagate", "torch", "mlir", "json"]),
    help="How it is written: for JAX by default, for ONNX and IRs of plugins as arguments of `propagate`.",
)
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write the plan here, not to stdout.")
@session_options
def plan(**options: Any) -> None:
    """Plan shardings of the inputs of the program in FILE (- for stdin), with a bound on what a better plan saves."""
    from shardy_py.plans.commands.run_plan import run_plan

    run_plan(**options)
