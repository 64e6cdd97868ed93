"""``shardy plugins``."""

from __future__ import annotations

import sys
from typing import Any

import click

from shardy_py.cli.registry import plugin_registry
from shardy_py.report.data import plugins_json
from shardy_py.report.tables import print_plugins


def run_plugins(*, as_json: bool, **registry_options: Any) -> None:
    """List what is installed; a broken plugin is shown, not raised."""
    registry = plugin_registry(warn=False, **registry_options)
    if as_json:
        click.echo(plugins_json(registry))
    else:
        print_plugins(registry, file=sys.stdout)
