"""``shardy explain`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs
from shardy_py.cli.options import schedule_option, session_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--value", metavar="NAME", help="Why this tensor is sharded as it is: %5, %5#1, %arg0, result0, @f:%2.")
@click.option("--dim", type=int, metavar="N", help="Only this dimension of it.")
@click.option("--op", metavar="OP", help="All about one op: %5, stablehlo.dot_general#2, model.py:12.")
@click.option("--reshard", type=int, metavar="N", help="Why there is this reshard, and what would remove it.")
@click.option("--reshards", "list_reshards", is_flag=True, help="List the reshards with their numbers.")
@click.option("--unsettled", is_flag=True, help="List the axes that one more visit of an op would bring.")
@click.option("--limit", default=12, show_default=True, type=click.IntRange(min=0), help="Proposals to try.")
@schedule_option()
@click.option(
    "--names",
    type=click.Choice(("input", "result")),
    default="input",
    show_default=True,
    help="Names as MLIR prints the module in FILE, or as shardy propagate prints the result.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
@needs(
    "limit",
    when=lambda values: values["reshard"] is not None,
    problem="without --reshard",
    hint="give --reshard N, whose proposals are tried",
)
def explain(**options: Any) -> None:
    """Explain the sharding of a tensor, an op or a reshard of the module in FILE (- for stdin)."""
    from shardy_py.explain.commands.run_explain import run_explain

    run_explain(**options)
