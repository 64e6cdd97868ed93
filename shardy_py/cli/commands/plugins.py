"""``shardy plugins`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.help import Command
from shardy_py.cli.options import plugin_choice


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plugin_choice
def plugins(**options: Any) -> None:
    """List the installed plugins and what became of them."""
    from shardy_py.cli.plugins import run_plugins

    run_plugins(**options)
