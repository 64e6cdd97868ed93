"""The command of ``shardy`` about what a program costs."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.options import session_options


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--machine", required=True, metavar="NAME|FILE", help="What the program runs on: a name, or a TOML file.")
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="AXIS=LINK,..",
    help="The links of the machine that an axis of the mesh runs over. May be repeated; then for all axes.",
)
@click.option("--schedule", metavar="FILE", help="The order of ops: a TOML file, or the name of a built-in schedule.")
@click.option("--layout", metavar="POLICY", help="Count bytes with these layouts: tpu-v5e or row-major.")
@click.option("--top", default=10, show_default=True, type=click.IntRange(min=0), help="Transfers to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--transfers", is_flag=True, help="With --json, list every transfer.")
@session_options
def cost(**options: Any) -> None:
    """Estimate what the program in FILE (- for stdin) costs on a machine: communication, computing, memory."""
    from shardy_py.cli.cost import run_cost

    run_cost(**options)
