"""``shardy rules``."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.api.rules import list_rules
from shardy_py.cli.files import read_input
from shardy_py.cli.lines import echo_report
from shardy_py.cli.registry import plugin_registry
from shardy_py.report.data import rules_json
from shardy_py.report.summary import format_rule


def run_rules(*, file: str, untrusted: bool, as_json: bool, **registry_options: Any) -> None:
    """Print each op of a file with its rule, in program order."""
    registry = plugin_registry(**registry_options)
    rules = list_rules(read_input(file, untrusted=untrusted, registry=registry), registry=registry)
    if as_json:
        click.echo(rules_json(rules))
        return
    echo_report("\n".join(format_rule(rule) for rule in rules))
