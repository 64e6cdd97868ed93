"""Reports as lines on stdout, warnings and other diagnostics on stderr: whole lines in a pipe, folded on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

import click

from shardy_py.errors import Diagnostic
from shardy_py.report.terminal_text import terminal_lines, terminal_message
from shardy_py.support.texts import escape_controls


def echo_report(text: str) -> None:
    """Print a report on stdout."""
    _echo(terminal_lines(text, sys.stdout), sys.stdout)


def echo_diagnostic(text: str) -> None:
    """Print the text of a diagnostic on stderr."""
    if sys.stderr is not None:
        _echo(terminal_message(escape_controls(text), sys.stderr), sys.stderr)


def _echo(text: str, file: IO[str]) -> None:
    # The text has colours only where the file shows them.
    click.echo(text, file=file, color=True)


_PRINTED = f"{__name__}.printed"


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Print warnings on stderr, each once in a run of a command: plugins and programs may warn of the same thing."""
    context = click.get_current_context(silent=True)
    printed: set[Diagnostic] = set() if context is None else context.meta.setdefault(_PRINTED, set())
    for warning in warnings:
        if warning not in printed:
            printed.add(warning)
            echo_diagnostic(warning.show("warning"))
