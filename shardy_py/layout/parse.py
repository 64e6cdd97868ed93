"""From XLA's text to shapes, strictly: what makes XLA abort, or what it lets through, is refused with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from shardy_py.errors import VerificationError, did_you_mean
from shardy_py.layout.lexer import LayoutCursor
from shardy_py.layout.shape import AnyShape, Bounded, OpaqueShape, Shape, Size, TokenShape, TupleShape
from shardy_py.layout.values import HBM, Layout, MemorySpace, Split, Tile
from shardy_py.support.element_types import ELEMENT_TYPES

_T = TypeVar("_T")
_MAX_DEPTH = 100
"""The most levels of nested tuples."""
_OTHER_PARTS = {
    "D": "dimension level types (sparse arrays)",
    "#": "an index type (dynamic arrays)",
    "*": "a pointer type (dynamic arrays)",
    "P": "a physical shape (sparse arrays)",
    "M": "a metadata prefix (dynamic arrays)",
}
_LAYOUT = re.compile(r"\{\s*[-\d:}]")
_ORDER = "T(..)(..) L(..) E(..) S(..) SC(..)"


def parse_shape(text: str) -> AnyShape:
    """Return the shape of a text.

    >>> parse_shape("f32[3,5]{1,0:T(2,2)}").layout.tiles
    (Tile(sizes=(2, 2)),)

    Raises:
        ParseError: the text is not a valid shape; the place is line and column.
    """
    cursor = LayoutCursor(text)
    shape = read_shape(cursor)
    if not cursor.at_end:
        cursor.fail("the end of the shape")
    return shape


def parse_array(text: str) -> Shape:
    """Return the array shape of a text.

    Raises:
        ParseError: the text is not a valid shape, or that of a tuple, a token or an opaque value.
    """
    shape = parse_shape(text)
    if not isinstance(shape, Shape):
        LayoutCursor(text).refuse("no-array", f"{shape} is not the shape of an array")
    return shape


def parse_layout(text: str) -> Layout:
    """Return the layout of a text in braces.

    Raises:
        ParseError: the text is not a valid layout.
    """
    cursor = LayoutCursor(text)
    layout = read_layout(cursor)
    if not cursor.at_end:
        cursor.fail("the end")
    return layout


def read_shape(cursor: LayoutCursor, depth: int = 0) -> AnyShape:
    """Read a shape from the present position."""
    if depth > _MAX_DEPTH:
        cursor.refuse("nested-too-deeply", f"tuples are nested more than {_MAX_DEPTH} deep")
    if cursor.accept("("):
        return TupleShape(_read_list(cursor, ")", lambda: read_shape(cursor, depth + 1)))
    start = cursor.skip()
    name = cursor.word("an element type, token[], opaque[] or a tuple")
    if name in ("token", "opaque"):
        cursor.expect("[")
        cursor.expect("]")
        return TokenShape() if name == "token" else OpaqueShape()
    if name not in ELEMENT_TYPES:
        meant = did_you_mean(name.lower(), ELEMENT_TYPES)
        message = f"there is no element type '{name}'{f'; {meant}' if meant else ''}"
        cursor.refuse("unknown-element-type", message, start)
    cursor.expect("[")
    sizes = _read_list(cursor, "]", lambda: _read_size(cursor))
    # A brace before anything else opens the body of a computation.
    if not _LAYOUT.match(cursor.text, cursor.skip()):
        return _checked(cursor, start, lambda: Shape(name, sizes))
    place = cursor.skip()
    layout = read_layout(cursor)
    if not sizes and str(layout) == "{}":
        cursor.refuse("malformed-shape", "an empty layout is not written", place)
    return _checked(cursor, place, lambda: Shape(name, sizes, layout))


def read_layout(cursor: LayoutCursor) -> Layout:
    """Read a layout from the present position."""
    cursor.expect("{")
    start = cursor.skip()
    numbers: list[int] = []
    while not (cursor.sees(":") or cursor.sees("}")):
        if numbers:
            cursor.expect(",", ":", "}")
        place = cursor.skip()
        number = cursor.integer("a dimension number", least=0)
        if number in numbers:
            cursor.refuse("invalid-minor-to-major", f"dimension {number} stands twice", place)
        numbers.append(number)
    if numbers and max(numbers) >= len(numbers):
        count = len(numbers)
        reason = f"dimension {max(numbers)} of {count}: the numbers are not a permutation of 0..{count - 1}"
        cursor.refuse("invalid-minor-to-major", reason, start)
    if not cursor.accept(":"):
        cursor.expect("}")
        return Layout(tuple(numbers))
    if cursor.sees("}"):
        cursor.fail(f"a part of a layout, in the order {_ORDER}")
    return _read_parts(cursor, numbers)


def _read_parts(cursor: LayoutCursor, numbers: list[int]) -> Layout:
    """Read what follows the colon of a layout, in XLA's order."""
    tiles: list[Tile] = []
    if cursor.accept("T"):
        tiles.append(_read_tile(cursor))
        while cursor.sees("("):
            tiles.append(_read_tile(cursor))
    tail_padding = _read_number(cursor, "L", "a tail padding", 1) if cursor.sees("L") else 1
    element_bits = _read_number(cursor, "E", "an element size in bits", 0) if cursor.sees("E") else 0
    space = _read_space(cursor) if cursor.sees("S") and not cursor.sees("SC") else HBM
    place = cursor.skip()
    splits: list[Split] = []
    if cursor.accept("SC"):
        splits.append(_read_split(cursor))
        while cursor.sees("("):
            splits.append(_read_split(cursor))
    _expect_end(cursor)
    return _checked(
        cursor,
        place,
        lambda: Layout(
            tuple(numbers),
            tuple(tiles),
            tail_padding=tail_padding,
            element_bits=element_bits,
            memory_space=space,
            splits=tuple(splits),
        ),
    )


def _expect_end(cursor: LayoutCursor) -> None:
    """Move over the brace that ends a layout; refuse any other part with a message."""
    if cursor.accept("}"):
        return
    place = cursor.skip()
    following = cursor.text[place : place + 1]
    if following in _OTHER_PARTS:
        cursor.refuse("unsupported-layout", f"{_OTHER_PARTS[following]} in a layout is not supported", place)
    if following and following in "TLES":
        cursor.refuse("malformed-shape", f"'{following}' stands twice or too late; the order is {_ORDER}", place)
    cursor.fail("'}'")


def _read_size(cursor: LayoutCursor) -> Size:
    if cursor.accept("?"):
        return None
    if cursor.accept("<="):
        return Bounded(cursor.integer("a bound", least=0))
    return cursor.integer("a size", least=0)


def _read_tile(cursor: LayoutCursor) -> Tile:
    cursor.expect("(")
    start = cursor.skip()
    if cursor.sees(")"):
        cursor.refuse("empty-tile", "a tile needs at least one size", start)
    place = start

    def size() -> int | None:
        nonlocal place
        place = cursor.skip()
        return None if cursor.accept("*") else cursor.integer("a tile size", least=1)

    sizes = _read_list(cursor, ")", size)
    return _checked(cursor, place, lambda: Tile(sizes))


def _read_split(cursor: LayoutCursor) -> Split:
    cursor.expect("(")
    start = cursor.skip()
    dimension = cursor.integer("a dimension number", least=0)
    cursor.expect(":")
    indices = _read_list(cursor, ")", lambda: cursor.integer("a split index", least=1))
    return _checked(cursor, start, lambda: Split(dimension, indices))


def _read_space(cursor: LayoutCursor) -> MemorySpace:
    cursor.expect("S")
    cursor.expect("(")
    place = cursor.skip()
    number = cursor.integer("a memory space", least=0)
    cursor.expect(")")
    return _checked(cursor, place, lambda: MemorySpace(number))


def _read_number(cursor: LayoutCursor, letter: str, what: str, least: int) -> int:
    cursor.expect(letter)
    cursor.expect("(")
    number = cursor.integer(what, least=least)
    cursor.expect(")")
    return number


def _read_list(cursor: LayoutCursor, end: str, item: Callable[[], _T]) -> tuple[_T, ...]:
    """Read items between commas up to and with the closing bracket; no comma may precede it."""
    if cursor.accept(end):
        return ()
    items = [item()]
    while not cursor.accept(end):
        cursor.expect(",", end)
        items.append(item())
    return tuple(items)


def _checked(cursor: LayoutCursor, place: int, make: Callable[[], _T]) -> _T:
    """Return a value; give the error of an invalid one its place."""
    try:
        return make()
    except VerificationError as error:
        diagnostic = error.diagnostics[0]
    cursor.refuse(diagnostic.code, diagnostic.message, place)
