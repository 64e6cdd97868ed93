"""Lists of items between commas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shardy_py.sharding.lexer import Cursor

_T = TypeVar("_T")


def comma_list(cursor: Cursor, close: str, item: Callable[[Cursor], _T]) -> tuple[_T, ...]:
    """Parse comma-separated items up to and including ``close``; the opening token is consumed already."""
    if cursor.accept(close):
        return ()
    items = [item(cursor)]
    while cursor.accept(","):
        items.append(item(cursor))
    cursor.expect(close, ",")
    return tuple(items)
