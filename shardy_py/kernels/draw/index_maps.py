"""Indexing maps as pictures: the elements that the threads of one block come to, in the order of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice, product
from math import prod

from shardy_py.indexing import IndexingMap

CELL, LEFT, TOP = 18, 96, 34
MOST_ROWS, MOST_COLUMNS = 24, 48
"""The most rows and columns of a picture: the first ones that the block comes to."""
_MOST_POINTS = 20_000
_DIMS = 6
"""The variables of a kernel's map: the thread and the block, along x, y and z."""


def thread_elements(map_: IndexingMap, threads: Sequence[int]) -> dict[tuple[int, ...], int]:
    """Return the elements that the threads of the first block come to, each with the number of the first such thread.

    Args:
        map_: A map from thread and block to the indices of elements; its symbols are the steps of a thread.
        threads: The threads of a block along x, y and z.
    """
    elements: dict[tuple[int, ...], int] = {}
    steps = product(*(range(bound.interval.lower, bound.interval.upper + 1) for bound in map_.ranges))
    for step in islice(steps, max(1, _MOST_POINTS // prod(threads))):
        for z, y, x in product(*(range(size) for size in reversed(threads))):
            dims = (x, y, z, 0, 0, 0)
            if map_.holds(dims, step):
                index = tuple(map_.evaluate(dims, step))
                elements.setdefault(index, (z * threads[1] + y) * threads[0] + x)
    return elements


def can_be_drawn(map_: IndexingMap) -> bool:
    """Return whether a map is one from thread and block to elements, known without a run."""
    return len(map_.dims) == _DIMS and not map_.runtimes and bool(map_.results) and not map_.is_known_empty


def draw_map_svg(map_: IndexingMap, threads: Sequence[int]) -> str:
    """Return a picture of a map: a cell per element with the number of its thread, a row per index before the last.

    Args:
        map_: A map from thread and block to the indices of elements.
        threads: The threads of a block along x, y and z.
    """
    elements = thread_elements(map_, threads)
    rows = sorted({index[:-1] for index in elements})
    columns = sorted({index[-1] for index in elements})
    drawn = "" if len(rows) <= MOST_ROWS and len(columns) <= MOST_COLUMNS else ", the first ones"
    title = f"block 0: {len(rows)} x {len(columns)} elements of {len(elements)}{drawn}"
    rows, columns = rows[:MOST_ROWS], columns[:MOST_COLUMNS]
    size = f'width="{LEFT + len(columns) * CELL + 8}" height="{TOP + len(rows) * CELL + 8}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="8">'
    cells = _cells(elements, rows, columns, prod(threads))
    return "\n".join([head, f'<text x="4" y="12" font-size="11">{escape(title)}</text>', *cells, "</svg>"])


def _cells(
    elements: dict[tuple[int, ...], int], rows: Sequence[tuple[int, ...]], columns: Sequence[int], threads: int
) -> Iterator[str]:
    for number, column in enumerate(columns):
        yield f'<text x="{LEFT + number * CELL + CELL // 2}" y="{TOP - 6}" text-anchor="middle">{column}</text>'
    for line, row in enumerate(rows):
        y = TOP + line * CELL
        yield f'<text x="4" y="{y + 12}">{", ".join(map(str, row))}</text>'
        for number, column in enumerate(columns):
            thread = elements.get((*row, column))
            if thread is not None:
                x, fill = LEFT + number * CELL, f"hsl({thread * 360 // threads}, 70%, 78%)"
                yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#bbb"/>'
                yield f'<text x="{x + CELL // 2}" y="{y + 12}" text-anchor="middle">{thread}</text>'
