"""Warnings of a command, on stderr."""

from __future__ import annotations

from collections.abc import Iterable

import click

from shardy_py.cli.lines import echo_diagnostic
from shardy_py.errors import Diagnostic

_PRINTED = f"{__name__}.printed"


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Print warnings on stderr, each once in a run of a command: plugins and programs may warn of the same thing."""
    context = click.get_current_context(silent=True)
    printed: set[Diagnostic] = set() if context is None else context.meta.setdefault(_PRINTED, set())
    for warning in warnings:
        if warning not in printed:
            printed.add(warning)
            echo_diagnostic(warning.show("warning"))
