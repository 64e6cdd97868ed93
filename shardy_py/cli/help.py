"""Help of commands in which no word is broken, names of options and values among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from shardy_py.cli.errors import NamedInput
from shardy_py.cli.needs import check_needs

_HYPHEN = "\ue000"
"""A character for private use that stands for a hyphen while lines are broken, which happens behind hyphens, too."""


class WholeWords(click.HelpFormatter):
    """A formatter that breaks lines at spaces only."""

    def write(self, string: str) -> None:
        """Write text with its hyphens."""
        super().write(string.replace(_HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names with what they mean."""
        shown = [(name, text.replace("-", _HYPHEN)) for name, text in rows]
        super().write_dl(shown, col_max=col_max, col_spacing=col_spacing)


class WholeWordsContext(click.Context):
    """A context whose help has whole words."""

    formatter_class = WholeWords


class Command(NamedInput):
    """A command whose help has whole words, and that refuses options without an effect."""

    context_class = WholeWordsContext

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, if every option that was given has an effect."""
        check_needs(self, ctx)
        return super().invoke(ctx)
