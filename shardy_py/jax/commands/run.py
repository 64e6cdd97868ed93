"""``shardy run`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs, needs_option
from shardy_py.cli.options import (
    AMOUNT,
    RANDOM_INPUTS,
    partitioner_option,
    run_options,
    schedule_option,
    session_options,
)


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--devices", type=click.IntRange(min=1), help="Host devices; by default as many as the mesh has.")
@run_options("The arguments", "Run the program without shardings, too")
@schedule_option()
@click.option("--platform", default="cpu", show_default=True, help="The devices of JAX: cpu, gpu, tpu.")
@partitioner_option("Run the local program, which is the default, or leave the communication to XLA's partitioner.")
@click.option("--timeout", default=600.0, show_default=True, type=AMOUNT, help="Seconds it may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
@needs_option("--compare", "compare", "tolerance")
@needs(
    "seed",
    when=lambda options: options["inputs"] == RANDOM_INPUTS,
    problem="on inputs of a file",
    hint="leave --seed or --inputs out",
)
def run(**options: Any) -> None:
    """Propagate shardings through the module in FILE (- for stdin), and run the result on devices.

    With --compare the exit code is 0 where the results are those of the program without shardings, 1 where they differ.
    """
    from shardy_py.jax.commands.run_run import run_run

    run_run(**options)
