"""Colour and width of what is written to a terminal; files and pipes get plain text in whole lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import IO, Literal

from shardy_py.report.words import wrap_line

Style = Literal["heading", "error", "warning", "hint", "good"]

_CODES: dict[Style, str] = {"heading": "1;36", "error": "1;31", "warning": "1;33", "hint": "36", "good": "32"}
_WORDS = re.compile(r"(?:(?<=^)|(?<= ))(error|warning|hint|note):(?= )", re.MULTILINE)
_STYLE_OF: dict[str, Style] = {"error": "error", "warning": "warning", "hint": "hint", "note": "hint"}
_EXCERPT = "    "
WIDTH = 80
"""The width of what is written to files and pipes, unless the variable ``COLUMNS`` says another one."""


def has_colour(file: IO[str]) -> bool:
    """Return whether text in a file is coloured: on a terminal, where ``NO_COLOR`` is not set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (file.isatty() and os.environ.get("TERM") != "dumb")


def text_width(file: IO[str] | None = None) -> int:
    """Return how many characters a line has: as many as the terminal, or ``COLUMNS``, or 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        # As wide as asked for where it is a terminal; one that does not know its width says 0.
        return os.get_terminal_size((file or sys.stdout).fileno()).columns or WIDTH
    except (OSError, ValueError, AttributeError):
        return WIDTH


def styled(text: str, style: Style, file: IO[str]) -> str:
    """Return text in the colour of a style, where the file has colours."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if has_colour(file) else text


def terminal_lines(text: str, file: IO[str]) -> str:
    """Return a report as a file shows it: on a terminal in lines of its width, with headings in colour.

    A heading is a line without indentation before one that has some.

    Args:
        text: The report.
        file: The file.
    """
    if not file.isatty():
        return text
    return "\n".join(_terminal_lines(text.split("\n"), file))


def terminal_message(text: str, file: IO[str]) -> str:
    """Return a diagnostic as a file shows it: on a terminal in lines of its width, with its severity in colour.

    Args:
        text: The text of the diagnostic; the lines of its excerpt, which are indented more, stay whole.
        file: The file.
    """
    if not file.isatty():
        return text
    width = text_width(file)
    lines = [[line] if line.startswith(_EXCERPT) else wrap_line(line, width) for line in text.split("\n")]
    wrapped = "\n".join(line for group in lines for line in group)
    return _WORDS.sub(lambda found: styled(found[0], _STYLE_OF[found[1]], file), wrapped)


def _terminal_lines(lines: list[str], file: IO[str]) -> Iterator[str]:
    width = text_width(file)
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_heading = bool(line) and not line.startswith(" ") and following.startswith(" ")
        for part in wrap_line(line, width):
            yield styled(part, "heading", file) if is_heading else part
