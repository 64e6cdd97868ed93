"""``shardy cost`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import excludes_option, needs, needs_option
from shardy_py.cli.options import AMOUNT, axis_option, partitioner_option, schedule_option, session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--machine", metavar="NAME|FILE", help="What the program runs on: a name, or a TOML file.")
@click.option("--profile", metavar="NAME", help="The compiler's rules: xla-cpu, xla-gpu or none; else the machine's.")
@axis_option()
@schedule_option()
@click.option("--layout", metavar="POLICY", help="Count bytes with these layouts: tpu-v5e or row-major.")
@click.option("--top", default=10, show_default=True, type=click.IntRange(min=0), help="Transfers to print.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--transfers", is_flag=True, help="With --json, list every transfer.")
@partitioner_option("Count in the local program, which is the default, or estimate what XLA's partitioner sends.")
@click.option("--local", "as_local", is_flag=True, help="Fail where there is no local program to count in.")
@click.option("--ops", is_flag=True, help="With --json, list every op and every line of the source.")
@click.option("--against-xla", is_flag=True, help="Compile for host devices; print estimates beside XLA's figures.")
@click.option("--against-jit", is_flag=True, help="Compile as jax.jit does; print what is different.")
@click.option("--timeout", default=600.0, show_default=True, type=AMOUNT, help="Seconds that XLA may take.")
@session_options
@needs_option("--json", "as_json", "transfers", "ops")
@excludes_option("--against-xla", "against_xla", "ops", "top")
@excludes_option("--json", "as_json", "top")
@needs_option("--against-xla", "against_xla", "timeout")
@needs_option("--machine", "machine", "axes")
@excludes_option("--against-xla", "against_xla", "as_local", "partitioner")
@excludes_option("--against-jit", "against_jit", "as_local", "partitioner")
@needs(
    *("profile", "layout", "top", "transfers", "ops", "partitioner", "as_local"),
    when=lambda values: bool(values["machine"] or values["against_xla"] or values["against_jit"]),
    problem="without --machine",
    hint="give --machine, too; without it a cost is an expression in unknown sizes",
)
@needs(
    "as_local",
    when=lambda values: values["partitioner"] != "xla",
    problem="together with --partitioner xla",
    hint="leave one of the two out",
)
def cost(**options: Any) -> None:
    """Count what the program in FILE (- for stdin) costs on a machine: communication, computing, memory."""
    from shardy_py.cost.commands.run_cost import run_cost

    run_cost(**options)
