"""Writes the table of options of a program in docs/reference/cli.md from the commands: ``python -m tests.docs``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from shardy_py.api.options import STRATEGIES
from shardy_py.cli.options import program_options
from tests.unit.cli.all_commands import all_commands

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
BEGIN, END = "<!-- options of a program: python -m tests.docs -->\n", "<!-- end -->"
LINKS = {
    "in_shardings": "see [give shardings](../how-to/give-shardings.md)",
    "inline_calls": "see [inline calls](../how-to/inline-calls.md)",
    "keep_uneven_shardings": "see [give shardings](../how-to/give-shardings.md#a-sharding-that-does-not-divide)",
    "like": "or the module as it is; by default as [the kind of program](../how-to/from-jax-jit.md) asks for",
    "untrusted": "see [files of unknown origin](../how-to/untrusted-input.md)",
}
"""The guides about options."""


PROGRAM_OPTIONS = click.command()(program_options(lambda **_: None, strategies=STRATEGIES)).params
"""The options of every command that propagates a program."""
PROGRAM_NAMES = {item.name for item in PROGRAM_OPTIONS}


def page() -> str:
    """Return the text of the page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{_table()}\n{END}{rest.partition(END)[2]}"


def _table() -> str:
    rows = [_row(item) for item in PROGRAM_OPTIONS if isinstance(item, click.Option)]
    return "\n".join(["| option | meaning |", "|---|---|", *sorted(rows)]) + "\n"


def _row(option: click.Option) -> str:
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = option.metavar or r"\|".join(choices) or ("" if option.is_flag else option.type.name.upper())
    flags = ", ".join(f"`{flag}{f' {value}' if value else ''}`" for flag in option.opts)
    link = f"; {LINKS[option.name]}" if option.name in LINKS else ""
    default = f"; by default `{option.default}`" if option.show_default and option.default != "" else ""
    text = (option.help or "").rstrip(".")
    # An abbreviation keeps its capitals.
    start = text[:1].lower() if text[1:2].islower() or text[1:2] == " " else text[:1]
    return f"| {flags} | {start}{text[1:]}{link}{default} |"


def sections() -> dict[str, str]:
    """Return the text of the page about each command, by the command's name."""
    text = PAGE.read_text(encoding="utf-8")
    matches = re.finditer(r"^## shardy ([a-z-]+(?: [a-z-]+)?).*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {match[1]: match[2] for match in matches}


def options_of(name: str) -> list[click.Option]:
    """Return the options of a command."""
    command = all_commands()[name]
    return [item for item in command.params if isinstance(item, click.Option)]
