"""Text in lines of a width: broken at spaces, then at brackets and punctuation, within a word as the last resort."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BRACKETS = re.compile(r"(?<=[^\s\[({<])(?=[\[({<])|(?<=/)")
_PUNCTUATION = re.compile(r"(?<=[,.:;_=|\-])")
_HANGING = 4


def fold(text: str, width: int) -> list[str]:
    """Return text in lines of a width; its own lines stay apart.

    Args:
        text: The text.
        width: The most characters in a line.

    >>> fold("float32[4096,64] of model.layers.weight", 12)
    ['float32', '[4096,64] of', 'model.', 'layers.', 'weight']
    """
    return [line for own in text.split("\n") for line in _fold_line(own, max(1, width))]


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
