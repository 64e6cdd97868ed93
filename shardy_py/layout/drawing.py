"""Pictures of a layout: where in memory each element lies, with the borders of tiles and the padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import product
from math import prod

from shardy_py.layout.index import padded_position
from shardy_py.layout.shape import Shape
from shardy_py.layout.tiling import combined
from shardy_py.layout.values import Tile
from shardy_py.values import frozen

_SHEETS = 4
_CELL = 36
_VIEWS = ((2, 4), (2, 2), (1, 4), (1, 2), (2, 1), (1, 1), (0, 2), (0, 1))
"""Numbers of borders of tiles inside of a row, and of places beside each, from the widest drawing to the narrowest."""


@frozen
class Sheet:
    """One plane of the two most minor dimensions.

    Args:
        index: The physical index of the plane in the other dimensions.
        rows: The rows shown; None where some are left out.
        columns: The columns shown; None where some are left out.
        tile: Rows and columns of a tile.
        size: Rows and columns that hold elements; the others are padding.
        positions: The position in memory of every place shown, by row and column.
    """

    index: tuple[int, ...]
    rows: tuple[int | None, ...]
    columns: tuple[int | None, ...]
    tile: tuple[int, int]
    size: tuple[int, int]
    positions: dict[tuple[int, int], int]

    def is_padding(self, row: int, column: int) -> bool:
        """Return whether the place is padding."""
        return row >= self.size[0] or column >= self.size[1]


def sheets(shape: Shape, view: tuple[int, int] = _VIEWS[0]) -> tuple[Sheet, ...]:
    """Return the planes of the two most minor physical dimensions, the first few of them; long sides are shortened.

    Args:
        shape: The shape.
        view: How many borders of tiles inside of a row are shown, and how many places beside each.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    tile = shape.layout.tiles[0] if shape.layout.tiles else Tile((1,))
    sizes, steps = combined(shape.physical_sizes, tile)
    sizes = (1,) * (2 - len(sizes)) + sizes
    steps = (1,) * (len(sizes) - len(steps)) + steps
    last = (sizes[-2], sizes[-1])
    step = (steps[-2], steps[-1])
    # Without tiles the only borders are those of the array.
    border = step if shape.layout.tiles else last
    padded = [-(-size // unit) * unit for size, unit in zip(last, step, strict=True)]
    rows, columns = _shown(padded[0], border[0], _VIEWS[0]), _shown(padded[1], border[1], view)
    outer = sizes[:-2]
    drawn = []
    for _, index in zip(range(_SHEETS), product(*map(range, outer)), strict=False):
        places = {
            (row, column): padded_position(shape, (*index, row, column))
            for row in rows
            for column in columns
            if row is not None and column is not None
        }
        drawn.append(Sheet(index, rows, columns, border, last, places))
    return tuple(drawn)


def draw_text(shape: Shape, *, width: int | None = None) -> str:
    """Return a layout as text: every place shows its position in memory, padding is in parentheses.

    Args:
        shape: The shape.
        width: The characters that a line may have; where rows are longer, fewer of their places are shown.

    >>> from shardy_py.layout.parse import parse_array
    >>> print(draw_text(parse_array("f32[3,3]{1,0:T(2,2)}")))
    +-----------+-----------+
    |  0     1  |  4    (5) |
    |  2     3  |  6    (7) |
    +-----------+-----------+
    |  8     9  | 12   (13) |
    |(10)  (11) |(14)  (15) |
    +-----------+-----------+

    Raises:
        VerificationError: a dimension is unbounded.
    """
    for view in _VIEWS:
        drawn = [_sheet_text(sheet) for sheet in sheets(shape, view)]
        text = "\n\n".join(drawn + _left_out(shape, len(drawn))) or "no elements"
        if width is None or max(map(len, text.split("\n"))) <= width:
            break
    return text


def draw_svg(shape: Shape) -> str:
    """Return a layout as an SVG picture: padding is shaded, tiles have heavy borders.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    parts: list[str] = []
    top, width = 24, 10 * len(str(shape))
    for sheet in sheets(shape):
        if sheet.index:
            parts.append(f'<text x="4" y="{top + 14}">plane {_joined(sheet.index)}</text>')
            top += 20
        parts += _sheet_svg(sheet, top)
        width = max(width, len(sheet.columns) * _CELL)
        top += len(sheet.rows) * _CELL + 12
    for line in _left_out(shape, len(sheets(shape))):
        parts.append(f'<text x="4" y="{top + 14}">{escape(line)}</text>')
        top += 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 8}" height="{top + 4}" '
        'font-family="monospace" font-size="12">'
    )
    return "\n".join([head, f'<text x="4" y="16">{escape(str(shape))}</text>', *parts, "</svg>"]) + "\n"


def _shown(length: int, tile: int, view: tuple[int, int]) -> tuple[int | None, ...]:
    """Return the places of a row that are shown: the ends, and what lies around the first borders of tiles."""
    count, edge = view
    borders = [0, *range(tile, length, max(tile, 1))[:count], length] if tile else [0, length]
    near = {place for border in borders for place in range(border - edge, border + edge) if 0 <= place < length}
    shown: list[int | None] = []
    for place in sorted(near):
        before = shown[-1] if shown else -1
        if before is not None and place == before + 2:
            shown.append(place - 1)
        elif before is not None and place > before + 2:
            shown.append(None)
        shown.append(place)
    return tuple(shown)


def _sheet_text(sheet: Sheet) -> str:
    width = max((len(str(position)) for position in sheet.positions.values()), default=1) + 2
    lines = [_line(sheet, row, width) for row in sheet.rows]
    border = _border(sheet, width)
    out = [border]
    for number, (row, line) in enumerate(zip(sheet.rows, lines, strict=True)):
        if number and row is not None and row % sheet.tile[0] == 0:
            out.append(border)
        out.append(line)
    title = [f"plane {_joined(sheet.index)}:"] if sheet.index else []
    return "\n".join([*title, *out, border])


def _line(sheet: Sheet, row: int | None, width: int) -> str:
    line = "|"
    for number, column in enumerate(sheet.columns):
        if number:
            line += " |" if column is not None and column % sheet.tile[1] == 0 else "  "
        line += _cell(sheet, row, column).rjust(width)
    return f"{line} |"


def _cell(sheet: Sheet, row: int | None, column: int | None) -> str:
    if row is None or column is None:
        return "... "
    position = sheet.positions[row, column]
    return f"({position})" if sheet.is_padding(row, column) else f"{position} "


def _border(sheet: Sheet, width: int) -> str:
    line = "+"
    for number, column in enumerate(sheet.columns):
        if number:
            line += "-+" if column is not None and column % sheet.tile[1] == 0 else "--"
        line += "-" * width
    return f"{line}-+"


def _sheet_svg(sheet: Sheet, top: int) -> list[str]:
    parts = []
    for (y, row), (x, column) in product(enumerate(sheet.rows), enumerate(sheet.columns)):
        left, upper = 4 + x * _CELL, top + y * _CELL
        known = row is not None and column is not None
        text = str(sheet.positions[row, column]) if row is not None and column is not None else "\u2026"
        fill = "#ddd" if row is not None and column is not None and sheet.is_padding(row, column) else "#fff"
        parts.append(
            f'<rect x="{left}" y="{upper}" width="{_CELL}" height="{_CELL}" fill="{fill}" '
            f'stroke="{"#999" if known else "none"}"/>'
            f'<text x="{left + _CELL // 2}" y="{upper + _CELL // 2 + 4}" text-anchor="middle">{text}</text>'
        )
    edges_y = [*_edges(sheet.rows, sheet.tile[0]), len(sheet.rows)]
    edges_x = [*_edges(sheet.columns, sheet.tile[1]), len(sheet.columns)]
    right, bottom = 4 + len(sheet.columns) * _CELL, top + len(sheet.rows) * _CELL
    for edge in edges_y:
        y = top + edge * _CELL
        parts.append(f'<path d="M4 {y}H{right}" stroke="#000" stroke-width="2"/>')
    for edge in edges_x:
        x = 4 + edge * _CELL
        parts.append(f'<path d="M{x} {top}V{bottom}" stroke="#000" stroke-width="2"/>')
    return parts


def _edges(places: Sequence[int | None], tile: int) -> list[int]:
    return [at for at, place in enumerate(places) if place is not None and place % tile == 0]


def _left_out(shape: Shape, drawn: int) -> list[str]:
    tile = shape.layout.tiles[0] if shape.layout.tiles else Tile((1,))
    total = prod(combined(shape.physical_sizes, tile)[0][:-2])
    return [f"... and {total - drawn} more planes"] if drawn and total > drawn else []


def _joined(index: Iterable[int]) -> str:
    return ",".join(map(str, index))
