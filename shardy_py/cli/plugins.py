"""``shardy plugins``."""

from __future__ import annotations

import sys

import click

from shardy_py.plugins import Registry
from shardy_py.report.data import plugins_json
from shardy_py.report.tables import print_plugins


def run_plugins(*, as_json: bool) -> None:
    """List what is installed; a broken plugin is shown, not raised."""
    registry = Registry.from_entry_points(skip_broken=True)
    if as_json:
        click.echo(plugins_json(registry))
    else:
        print_plugins(registry, file=sys.stdout)
