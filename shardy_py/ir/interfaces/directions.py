"""The directions of propagation barriers, as attributes of their ops."""

from __future__ import annotations

from shardy_py.ir.graph.attributes import RawAttribute

DIRECTION = "allowed_direction"
"""The attribute of a propagation barrier."""
DIRECTIONS = ("NONE", "FORWARD", "BACKWARD", "BOTH")
"""In the order of upstream's enumeration."""


def direction_code(value: object) -> int | None:
    """Return the number of the direction in an attribute of a propagation barrier, None if it is no direction.

    >>> direction_code("FORWARD"), direction_code(RawAttribute("2 : i32")), direction_code(4)
    (1, 2, None)
    """
    if isinstance(value, int):
        return value if 0 <= value < len(DIRECTIONS) else None
    text = value.text if isinstance(value, RawAttribute) else value
    if not isinstance(text, str):
        return None
    number = text.partition(":")[0].strip()
    if number.isdecimal():
        return direction_code(int(number))
    return next((code for code, name in enumerate(DIRECTIONS) if name in text), None)
