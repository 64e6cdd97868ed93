"""Tables for terminals and pipes: words are folded where the width is too small, numbers are never cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import IO

from rich import box
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Sections = Iterable[Iterable[Sequence[str]]]
"""The rows of a table, in sections with a line between them."""
_UNLIMITED = 100_000
_LEAST = 12
"""The least width of a column that is folded."""


def open_console(file: IO[str] | None = None, *, pipe_width: int = 0) -> Console:
    """Return a console that prints to a file, by default stdout.

    Args:
        file: The file.
        pipe_width: The least width where the file is no terminal.
    """
    console = Console(file=file)
    if not console.is_terminal:
        console.width = max(console.width, pipe_width)
    return console


def make_table(
    console: Console, title: str, headings: Sequence[str], sections: Sections, *, words: Collection[str]
) -> Table:
    """Return a table for a console; where it is too wide, headings are stacked and columns of words are folded.

    Args:
        console: The console.
        title: The title.
        headings: The headings.
        sections: The cells.
        words: The headings of the columns with words, which stand left; the others are numbers.
    """
    known = [list(rows) for rows in sections]
    table = _table(title, headings, known, words)
    if fits(table, console):
        return table
    stacked = [heading.replace(" ", "\n") for heading in headings]
    folded = _folded(
        stacked, known, [heading in words for heading in headings], console.width, gap=2 if console.is_terminal else 3
    )
    narrow = _table(title, stacked, known, [word.replace(" ", "\n") for word in words], folded)
    if console.is_terminal:
        narrow.collapse_padding, narrow.pad_edge = True, False
    return narrow


def fits(table: Table, console: Console) -> bool:
    """Return whether a console is wide enough for all columns of a table."""
    options = console.options.update(max_width=_UNLIMITED)
    return Measurement.get(console, options, table).maximum <= console.width


def _table(
    title: str,
    headings: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    words: Collection[str],
    folded: Collection[int] = (),
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    for number, heading in enumerate(headings):
        justify: JustifyMethod = "left" if heading in words else "right"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=number not in folded)
    for rows in sections:
        for row in rows:
            table.add_row(*map(Text, row))
        table.add_section()
    return table


def _folded(
    headings: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    are_words: Sequence[bool],
    width: int,
    *,
    gap: int,
) -> frozenset[int]:
    """Return the columns of words that have to be folded, the widest ones, so that a table gets no wider than that."""
    rows = [row for section in sections for row in section]
    widths = [max(map(_width, [heading, *(row[i] for row in rows)])) for i, heading in enumerate(headings)]
    left = width - gap * len(headings) - 2
    left -= sum(own for own, is_words in zip(widths, are_words, strict=True) if not is_words)
    open_columns = sorted((number for number, is_words in enumerate(are_words) if is_words), key=widths.__getitem__)
    while open_columns and widths[open_columns[0]] <= left - _LEAST * (len(open_columns) - 1):
        left -= widths[open_columns.pop(0)]
    return frozenset(open_columns)


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))
