"""``shardy rules`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.help import Command
from shardy_py.cli.options import module_options, plugin_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@module_options
@plugin_options
def rules(**options: Any) -> None:
    """Print the sharding rule of each op in FILE (- for stdin)."""
    from shardy_py.cli.rules import run_rules

    run_rules(**options)
