"""The number that stands for a size that is not known, in rules and in all that computes with sizes."""

from __future__ import annotations

from math import gcd

STAND_IN_SIZE = 5_354_228_880 << 29
"""A size that every number up to 24 and every power of two up to 2^33 divides; it fits in 64 bits."""
_MOST_PARTS = 1 << 16
_CHANGES = sorted(range(-512, 513), key=abs)


def is_known(size: int | None) -> bool:
    """Return whether a size is a true one."""
    return size is not None and size != STAND_IN_SIZE


def is_derived(size: int | None) -> bool:
    """Return whether a number is the stand-in, a part of it, or a multiple of one.

    >>> is_derived(3 * STAND_IN_SIZE // 16), is_derived(2**63 - 1), is_derived(64)
    (True, False, False)
    """
    return size is not None and is_large(size) and gcd(size, STAND_IN_SIZE) * _MOST_PARTS >= STAND_IN_SIZE


def is_near_derived(size: int | None) -> bool:
    """Return whether a number is derived from the stand-in, or little more or less: one part with its neighbours.

    >>> is_near_derived(STAND_IN_SIZE // 2 + 2), is_near_derived(-(-STAND_IN_SIZE // 25))
    (True, False)
    """
    return size is not None and is_large(size) and any(is_derived(size + change) for change in _CHANGES)


def is_large(size: int | None) -> bool:
    """Return whether a size is larger than any true one."""
    return size is not None and size >= STAND_IN_SIZE // _MOST_PARTS
