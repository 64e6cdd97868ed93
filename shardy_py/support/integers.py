"""Integers as callers and texts give them."""

from __future__ import annotations

from operator import index
from typing import Any

INT64_MAX = 2**63 - 1
_MOST_DIGITS = 1000


def as_integer(value: Any) -> int | None:
    """Return an integer of Python or numpy; None for anything else, be it a Boolean.

    >>> as_integer(3), as_integer(True), as_integer("3")
    (3, None, None)
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def parse_integer(text: str) -> int | None:
    """Return the value of a decimal number without a sign; None for any other text, and beyond 64 bits.

    >>> parse_integer("12"), parse_integer("-1"), parse_integer("9" * 5000)
    (12, None, None)
    """
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    value = int(text)
    return value if value <= INT64_MAX else None
