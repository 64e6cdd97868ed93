"""Warnings of a command, on stderr."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.cli.lines import echo_diagnostic
from shardy_py.errors import Diagnostic


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        echo_diagnostic(warning.show("warning"))
