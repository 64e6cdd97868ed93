"""``shardy compare-jit`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import AMOUNT, schedule_option, session_options


@click.command(cls=Command)
@click.argument("program")
@click.option(
    "--devices",
    default=8,
    show_default=True,
    type=click.IntRange(min=1),
    help="Host devices for a program of Python; a file is compiled for as many as its mesh has.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--timeout", default=600.0, show_default=True, type=AMOUNT, help="Seconds that XLA may take.")
@schedule_option()
@session_options
def compare_jit(**options: Any) -> None:
    """Compile PROGRAM as jax.jit does, and compare what XLA decides with what is decided here, op by op.

    PROGRAM is a file, or module:name of a lowered or traced program of JAX, or of a function without parameters that
    returns one. The exit code is 0 where all is equal, 1 where something differs.
    """
    from shardy_py.jax.commands.run_compare_jit import run_compare_jit

    run_compare_jit(**options)
