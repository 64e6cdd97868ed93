"""Tables for terminals and pipes: words are folded where the width is too small, numbers are never cut."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO

from rich import box
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from shardy_py.report.terminal_text import fold, least_width, text_width, wrap_line

Sections = Iterable[Iterable[Sequence[str]]]
"""The rows of a table, in sections with a line between them."""
HEADING, GOOD, BAD, NOTE = "bold cyan", "green", "bold red", "yellow"
_UNLIMITED = 100_000
_LEAST = 12
"""The least width of a column of words whose parts are longer than all of the table may be."""
_GAP = 2
"""The space between the columns of a narrow table, and of both its edges."""


class _PipeConsole(Console):
    """Console that leaves a reader that went away to its caller; Rich would end the process with the code 1."""

    def on_broken_pipe(self) -> None:
        """Raise the `BrokenPipeError` that is being handled."""
        self.quiet = True
        raise


def open_console(file: IO[str] | None = None) -> Console:
    """Return a console that prints to a file, by default stdout.

    A terminal has colours unless ``NO_COLOR`` is set; a file that is none is 80 columns wide, or as ``COLUMNS`` says.
    """
    console = _PipeConsole(file=file, highlight=False)
    if os.environ.get("NO_COLOR"):
        console = _PipeConsole(file=file, highlight=False, color_system=None)
    if not console.is_terminal:
        console.width = text_width()
    return console


def print_table(
    console: Console,
    title: str,
    headings: Sequence[str],
    sections: Sections,
    *,
    words: Collection[str],
    caption: str = "",
) -> None:
    """Print the tables of `make_tables`, with a line below the last one."""
    tables = make_tables(console, title, headings, sections, words=words)
    tables[-1].caption = caption or None
    for table in tables:
        console.print(table)


def print_lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    """Print lines of text: whole in a pipe, no wider than the terminal on one."""
    for line in lines:
        for part in wrap_line(line, console.width) if console.is_terminal else [line]:
            console.print(Text(part, style), soft_wrap=True)


def make_tables(
    console: Console, title: str, headings: Sequence[str], sections: Sections, *, words: Collection[str]
) -> list[Table]:
    """Return a table for a console; where it is too wide, headings are stacked and columns of words are folded.

    Where the words of all columns cannot stand beside each other either, there are several tables, each with the
    first column.

    Args:
        console: The console.
        title: The title.
        headings: The headings.
        sections: The cells.
        words: The headings of the columns with words, which stand left; the others are numbers.
    """
    rows_by_section = [[list(row) for row in rows] for rows in sections]
    are_words = [heading in words for heading in headings]
    table = _table(title, headings, rows_by_section, are_words)
    if fits(table, console):
        return [table]
    columns = [
        _Column(heading.replace(" ", "\n"), [row[number] for rows in rows_by_section for row in rows], is_words)
        for number, (heading, is_words) in enumerate(zip(headings, are_words, strict=True))
    ]
    groups = list(_groups(columns, console.width))
    titles = [title, *([""] * (len(groups) - 1))]
    return [
        _narrow_table(own_title, columns, group, rows_by_section, console.width)
        for own_title, group in zip(titles, groups, strict=True)
    ]


def fits(table: Table, console: Console) -> bool:
    """Return whether a console is wide enough for all columns of a table."""
    options = console.options.update(max_width=_UNLIMITED)
    return Measurement.get(console, options, table).maximum <= console.width


class _Column:
    """A column of a narrow table: its heading, and how wide it is and has to be."""

    def __init__(self, heading: str, cells: Sequence[str], is_words: bool) -> None:
        self.heading, self.is_words = heading, is_words
        self.width = max(map(_width, [heading, *cells]))
        self.least = max(map(least_width, [heading, *cells])) if is_words else self.width


def _groups(columns: Sequence[_Column], width: int) -> Iterator[list[int]]:
    """Yield the columns of each table: as many as stand beside each other, the first one in all of them."""
    first = columns[0].least
    if first + max((column.least for column in columns[1:]), default=0) + _GAP * 3 > width:
        first = min(first, width // 2)
    group, used = [0], first
    for number, column in enumerate(columns[1:], start=1):
        if len(group) > 1 and used + column.least + _GAP * (len(group) + 1) > width:
            yield group
            group, used = [0], first
        group.append(number)
        used += column.least
    yield group


def _narrow_table(
    title: str,
    columns: Sequence[_Column],
    group: Sequence[int],
    sections: Sequence[Sequence[Sequence[str]]],
    width: int,
) -> Table:
    """Return a table of some of the columns, with the cells of words folded."""
    group_columns = [columns[number] for number in group]
    widths = _widths(group_columns, width - _GAP * len(group_columns))
    folded = [
        [["\n".join(fold(row[number], size)) for number, size in zip(group, widths, strict=True)] for row in rows]
        for rows in sections
    ]
    headings = ["\n".join(fold(column.heading, size)) for column, size in zip(group_columns, widths, strict=True)]
    table = _table(title, headings, folded, [column.is_words for column in group_columns])
    table.collapse_padding, table.pad_edge = True, False
    return table


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the widths of columns that are to have a width together; those that need least get all they need."""
    limit = max(_LEAST, width // len(columns))
    widths = [column.least for column in columns]
    if sum(widths) > width:
        widths = [min(size, limit) if column.is_words else size for column, size in zip(columns, widths, strict=True)]
    rest = max(0, width - sum(widths))
    growing = sorted(range(len(columns)), key=lambda number: columns[number].width - widths[number])
    for place, number in enumerate(growing):
        more = min(columns[number].width - widths[number], rest // (len(growing) - place))
        widths[number] += more
        rest -= more
    return widths


def _table(
    title: str, headings: Sequence[str], sections: Sequence[Sequence[Sequence[str]]], are_words: Sequence[bool]
) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_style=HEADING,
        title_justify="left",
        caption_justify="left",
        caption_style="",
    )
    for heading, is_words in zip(headings, are_words, strict=True):
        justify: JustifyMethod = "left" if is_words else "right"
        table.add_column(Text(heading), justify=justify, overflow="fold", no_wrap=True)
    for rows in sections:
        for row in rows:
            table.add_row(*map(Text, row))
        table.add_section()
    return table


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))
