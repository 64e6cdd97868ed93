"""``shardy rules``."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import module_options, plugin_options


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@module_options
@plugin_options
def rules(*, file: str, untrusted: bool, as_json: bool, **registry_options: Any) -> None:
    """Print the sharding rule of each op in FILE (- for stdin)."""
    from shardy_py.api.rules import list_rules
    from shardy_py.cli.files import echo_report, read_input
    from shardy_py.cli.registry import plugin_registry
    from shardy_py.report.data import rules_json
    from shardy_py.report.summary import format_rule

    registry = plugin_registry(**registry_options)
    op_rules = list_rules(read_input(file, untrusted=untrusted, registry=registry), registry=registry)
    if as_json:
        click.echo(rules_json(op_rules))
    else:
        echo_report("\n".join(format_rule(rule) for rule in op_rules))
