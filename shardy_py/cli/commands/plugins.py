"""``shardy plugins``."""

from __future__ import annotations

import sys
from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import plugin_choice


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plugin_choice
def plugins(*, as_json: bool, **registry_options: Any) -> None:
    """List the installed plugins and what became of them."""
    from shardy_py.cli.registry import plugin_registry
    from shardy_py.report.data import plugins_json
    from shardy_py.report.tables import print_plugins

    # The list shows what is wrong with a plugin, so nothing is printed before it.
    registry = plugin_registry(warn=False, **registry_options)
    if as_json:
        click.echo(plugins_json(registry))
    else:
        print_plugins(registry, file=sys.stdout)
