"""Accesses of a warp as lines of text, and as a picture in SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from shardy_py.kernels.draw.accesses import LINE, WORD, WarpAccess
from shardy_py.kernels.roofline import SECTOR

MOST_LINES = 4
"""The lines of memory that one access shows at most."""
_CELL, _AROUND = 3, 13
"""The characters of a word, and those of a row besides its words."""


def draw_text(accesses: Sequence[WarpAccess], *, width: int | None = None) -> str:
    """Return a warp's accesses, each with its words: a column per word, a row per line of 128 bytes.

    Accesses that differ by where they begin alone are one picture, that of the first.

    Args:
        accesses: The accesses.
        width: The most characters of a row. A line of memory that has more is shown as two or four rows, without those
            that no thread accesses. None for any number.
    """
    groups: dict[object, list[WarpAccess]] = {}
    for access in accesses:
        groups.setdefault(access.pattern, []).append(access)
    columns = _row_words(width)
    return "\n".join(line for group in groups.values() for line in _picture(group, columns))


def _row_words(width: int | None) -> int:
    """Return how many words are in a row: a line of memory, or the half or quarter of one that is not too long."""
    words = LINE // WORD
    while width is not None and words > SECTOR // WORD and words * _CELL + _AROUND > width:
        words //= 2
    return words


def _picture(group: Sequence[WarpAccess], columns: int) -> Iterator[str]:
    access = group[0]
    yield title(group)
    yield f"   {addresses(access)}"
    shown = list(access.lines.items())
    for line, words in shown[:MOST_LINES]:
        for first in sorted({word - word % columns for word in words}):
            cells = [_cell(words.get(word, ())) for word in range(first, first + columns)]
            yield f"   {line * LINE + first * WORD:>8} |{' '.join(cells)}|"
    if len(shown) > MOST_LINES:
        yield f"   and {len(shown) - MOST_LINES} more lines"


def title(group: Sequence[WarpAccess]) -> str:
    """Return the first line about accesses of one pattern."""
    access = group[0]
    verb = "writes" if access.is_write else "reads"
    times = f", {len(group)} times" if len(group) > 1 else ""
    each = " each" if len(group) > 1 else ""
    return f"{verb} {access.memory}, {access.width} bytes a thread{times}: {access.cost}{each}"


def _cell(lanes: Sequence[int]) -> str:
    """Return the thread at a word, a plus for several."""
    if not lanes:
        return " ."
    return f"{lanes[0]:>2}" if len(lanes) == 1 else " +"


def addresses(access: WarpAccess) -> str:
    """Return the first byte of each thread: ranges of threads with a first byte and a step.

    >>> addresses(WarpAccess("tensor.extract", "tile 0", False, True, (0, 4, 8, 96, 100, None), 4))
    'threads 0-2: 0 + 4 a thread, threads 3-4: 96 + 4 a thread'
    """
    runs: list[list[tuple[int, int]]] = []
    for lane, place in enumerate(access.places):
        if place is None:
            continue
        run = runs[-1] if runs else []
        step = run[1][1] - run[0][1] if len(run) > 1 else None
        if run and run[-1][0] == lane - 1 and step in (None, place - run[-1][1]) and _is_near(run, place):
            run.append((lane, place))
        else:
            runs.append([(lane, place)])
    return ", ".join(map(_run, runs))


def _is_near(run: Sequence[tuple[int, int]], place: int) -> bool:
    """Return whether a place may be the second one of a run: a jump begins a new one."""
    return len(run) > 1 or abs(place - run[0][1]) < 1 << 20


def _run(run: Sequence[tuple[int, int]]) -> str:
    if len(run) == 1:
        return f"thread {run[0][0]}: {run[0][1]}"
    step = next(after[1] - before[1] for before, after in pairwise(run))
    return f"threads {run[0][0]}-{run[-1][0]}: {run[0][1]} + {step} a thread"


CELL, LEFT, HEAD = 20, 76, 40
MOST_SVG_LINES = 32
_COLUMNS = LINE // WORD


def draw_svg(accesses: Sequence[WarpAccess]) -> str:
    """Return a warp's accesses below each other: a column per bank or word of a line, a row per line of 128 bytes.

    Threads have the colours of a rainbow; thick lines are the borders of sectors. Accesses that differ by where they
    begin alone are one picture.
    """
    groups: dict[object, list[WarpAccess]] = {}
    for access in accesses:
        groups.setdefault(access.pattern, []).append(access)
    parts: list[str] = []
    top = 8
    for group in groups.values():
        parts += _svg_picture(group, top)
        top += HEAD + CELL * (min(len(group[0].lines), MOST_SVG_LINES) + 1)
    size = f'width="{LEFT + _COLUMNS * CELL + 12}" height="{top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="10">'
    return "\n".join([head, *parts, "</svg>"])


def _svg_picture(group: Sequence[WarpAccess], top: int) -> Iterator[str]:
    access = group[0]
    yield f'<text x="4" y="{top + 12}" font-size="12">{escape(title(group))}</text>'
    yield f'<text x="4" y="{top + 28}">{escape(addresses(access))}</text>'
    for row, (line, words) in enumerate(list(access.lines.items())[:MOST_SVG_LINES]):
        y = top + HEAD + row * CELL
        yield f'<text x="4" y="{y + 14}">{line * LINE}</text>'
        yield from _row(words, y)


def _row(words: dict[int, list[int]], y: int) -> Iterator[str]:
    for column in range(_COLUMNS):
        x = LEFT + column * CELL
        lanes = words.get(column, [])
        fill = f"hsl({lanes[0] * 360 // 32}, 70%, 75%)" if lanes else "none"
        yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#bbb"/>'
        if lanes:
            label = str(lanes[0]) if len(lanes) == 1 else "+"
            yield f'<text x="{x + CELL // 2}" y="{y + 14}" text-anchor="middle">{label}</text>'
    for column in range(0, _COLUMNS + 1, SECTOR // WORD):
        x = LEFT + column * CELL
        yield f'<line x1="{x}" y1="{y}" x2="{x}" y2="{y + CELL}" stroke="#333" stroke-width="2"/>'
