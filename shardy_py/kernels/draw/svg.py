"""Accesses of a warp as a picture in SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from shardy_py.kernels.draw.text import addresses, title
from shardy_py.kernels.draw.warps import LINE, SECTOR, WORD, WarpAccess

CELL, LEFT, HEAD = 20, 76, 40
MOST_LINES = 32
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
        parts += _picture(group, top)
        top += HEAD + CELL * (min(len(group[0].lines), MOST_LINES) + 1)
    size = f'width="{LEFT + _COLUMNS * CELL + 12}" height="{top}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="10">'
    return "\n".join([head, *parts, "</svg>"])


def _picture(group: Sequence[WarpAccess], top: int) -> Iterator[str]:
    access = group[0]
    yield f'<text x="4" y="{top + 12}" font-size="12">{escape(title(group))}</text>'
    yield f'<text x="4" y="{top + 28}">{escape(addresses(access))}</text>'
    for row, (line, words) in enumerate(list(access.lines.items())[:MOST_LINES]):
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
