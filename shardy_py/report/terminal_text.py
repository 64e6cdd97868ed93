"""Text for a terminal, folded to its width and coloured; files and pipes get plain text in whole lines.

Lines are broken at spaces, then at brackets and punctuation, and within a word as the last resort.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import IO, Literal

from shardy_py.support.late_patterns import late_pattern

_BRACKETS = late_pattern(r"(?<=[^\s\[({<])(?=[\[({<])|(?<=/)")
_PUNCTUATION = late_pattern(r"(?<=[,.:;_=|\-])")
_HANGING = 4


def fold(text: str, width: int) -> list[str]:
    """Return text in lines of a width; its own lines stay apart.

    Args:
        text: The text.
        width: The most characters in a line.

    >>> fold("float32[4096,64] of model.layers.weight", 12)
    ['float32', '[4096,64] of', 'model.', 'layers.', 'weight']
    """
    return [line for paragraph in text.split("\n") for line in _fold_line(paragraph, max(1, width))]


def least_width(text: str) -> int:
    """Return the width of the longest part of text that is broken only where nothing else helps.

    >>> least_width("float32[4096,64] of a tensor")
    9
    """
    return max((len(part) for word in text.split() for part in _BRACKETS.split(word)), default=0)


def wrap_line(line: str, width: int) -> list[str]:
    """Return a line in lines of a width, those after the first indented more.

    >>> wrap_line("  a line that is too long", 14)
    ['  a line that', '      is too', '      long']
    """
    if len(line) <= width:
        return [line]
    body = line.lstrip(" ")
    indent = len(line) - len(body)
    hanging = min(indent + _HANGING, width // 2)
    first, *rest = _fold_line(body, max(1, width - indent), max(1, width - hanging))
    return [" " * indent + first, *(" " * hanging + other for other in rest)]


def _fold_line(line: str, width: int, other_width: int | None = None) -> list[str]:
    """Return one line in lines of a width, those after the first of another width."""
    lines = [""]
    later = width if other_width is None else other_width
    for space, part in _parts(line, min(width, later)):
        limit = width if len(lines) == 1 else later
        joined = f"{lines[-1]}{space}{part}" if lines[-1] else part
        if len(joined) <= limit or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def _parts(line: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield the parts between which a line may be broken, each with the space before it."""
    space = ""
    for token in re.findall(r" +|[^ ]+", line):
        if token.startswith(" "):
            space = token
            continue
        for number, part in enumerate(_broken(token, width)):
            yield ("" if number else space), part
        space = ""


def _broken(word: str, width: int) -> Iterator[str]:
    """Yield the parts of a word: it as a whole where it is short enough."""
    if len(word) <= width:
        yield word
        return
    for part in _BRACKETS.split(word):
        if len(part) <= width:
            yield part
            continue
        for piece in _PUNCTUATION.split(part):
            yield from (piece[start : start + width] for start in range(0, len(piece), width))


Style = Literal["heading", "error", "warning", "hint", "good"]

_CODES: dict[Style, str] = {"heading": "1;36", "error": "1;31", "warning": "1;33", "hint": "36", "good": "32"}
_WORDS = late_pattern(r"(?:(?<=^)|(?<= ))(error|warning|hint|note):(?= )", re.MULTILINE)
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
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
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
    return _WORDS.sub(lambda match: styled(match[0], _STYLE_OF[match[1]], file), wrapped)


def _terminal_lines(lines: list[str], file: IO[str]) -> Iterator[str]:
    width = text_width(file)
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        is_heading = bool(line) and not line.startswith(" ") and following.startswith(" ")
        for part in wrap_line(line, width):
            yield styled(part, "heading", file) if is_heading else part
