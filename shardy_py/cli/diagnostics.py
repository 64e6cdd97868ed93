"""Warnings of a command, on stderr."""

from __future__ import annotations

from collections.abc import Iterable

import click

from shardy_py.errors import Diagnostic


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        click.echo(warning.show("warning"), err=True)
