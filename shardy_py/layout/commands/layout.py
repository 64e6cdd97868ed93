"""``shardy layout`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import LAYOUTS


@click.command(cls=Command)
@click.argument("shape")
@click.option("--index", metavar="I,J,..", help="Print only the position of this element in memory.")
@click.option("--bytes", "only_bytes", is_flag=True, help="Print only the exact bytes in memory.")
@click.option("--shard", metavar="AxBx..", help="Take the shape of a shard: each dimension in so many parts.")
@click.option("--policy", type=click.Choice(LAYOUTS), help="Take the layout this policy chooses; print only the shape.")
@click.option("--draw", is_flag=True, help="Draw where each element lies.")
@click.option("--svg", metavar="OUT", type=click.Path(), help="Draw it as an SVG picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def layout(**options: Any) -> None:
    """Print the anatomy and the bytes of SHAPE, or of an HLO operation: 'f32[3,5]{1,0:T(2,2)}'."""
    from shardy_py.layout.commands.run_layout import run_layout

    run_layout(**options)
