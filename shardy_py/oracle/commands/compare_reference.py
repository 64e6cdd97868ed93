"""``shardy compare-reference`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import AMOUNT, module_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--pipeline",
    default="sdy-propagation-pipeline",
    show_default=True,
    help="Passes by their upstream names, separated by commas, with options in braces.",
)
@click.option("--inline-calls", is_flag=True, help="Inline calls first; both sides get the same inlined module.")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(min=1), help="Differences to show.")
@click.option("--timeout", default=600.0, show_default=True, type=AMOUNT, help="Seconds the C++ passes may take.")
@module_options
def compare_reference(**options: Any) -> None:
    """Run passes over FILE (- for stdin) here and in the C++ of jaxlib, and compare the results.

    The exit code is 0 where they are equal, 1 where they differ.
    """
    from shardy_py.oracle.commands.run_compare_reference import run_compare_reference

    run_compare_reference(**options)
