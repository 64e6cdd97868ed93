"""The number that stands for a size that is not known, in rules and in all that computes with sizes."""

from __future__ import annotations

STAND_IN_SIZE = 5_354_228_880 << 29
"""A size that every number up to 24 and every power of two up to 2^33 divides; it fits in 64 bits."""


def is_known(size: int | None) -> bool:
    """Return whether a size is a true one."""
    return size is not None and size != STAND_IN_SIZE
