"""Positions of devices as numbers of several digits, the common ground of mesh axes and tile dimensions.

An axis or a tile dimension is one or more digits of the position. A digit has a stride, which is the product of the
sizes of all digits less significant than it, and a size. Axes that several meshes or tilings have in common are the
digits they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from shardy_py.values import frozen


@frozen(cache_hash=True)
class Digit:
    """One digit of the position of a device.

    Args:
        stride: How far two devices are apart that differ by one in this digit only.
        size: The number of values it takes.
    """

    stride: int
    size: int

    @property
    def end(self) -> int:
        """The stride of the next more significant digit."""
        return self.stride * self.size


Digits = tuple[Digit, ...]
"""Digits in the order of an array's dimensions, major first; without those of size one."""


def digits_of(sizes: Sequence[int]) -> Digits:
    """Return the digits of an array in row-major order, one per dimension, those of size one too.

    >>> digits_of((4, 2))
    (Digit(stride=2, size=4), Digit(stride=1, size=2))
    """
    found, stride = [], 1
    for size in reversed(sizes):
        found.append(Digit(stride, size))
        stride *= size
    return tuple(reversed(found))


def merged(digits: Iterable[Digit]) -> Digits:
    """Return digits with neighbours joined that follow each other, and those of size one dropped."""
    found: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if found and found[-1].stride == digit.end:
            digit = Digit(digit.stride, found.pop().size * digit.size)
        found.append(digit)
    return tuple(found)


def find_digits(positions: Sequence[int]) -> Digits | None:
    """Return the digits of which the positions are made, or None if they are no permuted digits.

    Args:
        positions: A permutation of 0, 1, 2...; an array in row-major order, whatever its dimensions.

    >>> find_digits([0, 2, 4, 6, 1, 3, 5, 7])
    (Digit(stride=1, size=2), Digit(stride=2, size=4))
    """
    rest, found = positions, []
    while len(rest) > 1:
        stride = rest[1] - rest[0]
        run = 1
        while run < len(rest) and rest[run] == rest[0] + run * stride:
            run += 1
        if stride < 1 or len(rest) % run:
            return None
        found.append(Digit(stride, run))
        rest = rest[::run]
    found.reverse()
    return tuple(found) if list(positions_of(found)) == list(positions) else None


def positions_of(digits: Sequence[Digit]) -> Iterable[int]:
    """Return the positions of the devices of an array with these digits, in row-major order."""
    return map(sum, product(*(range(0, digit.end, digit.stride) for digit in digits)))


def split_digits(digits: Sequence[Digit], sizes: Sequence[int]) -> tuple[Digits, ...] | None:
    """Return the digits that each dimension of an array consists of, or None if a digit would be cut unevenly.

    Args:
        digits: All digits, major first.
        sizes: The sizes of the dimensions; their product is that of the sizes of the digits.

    >>> split_digits((Digit(1, 8),), (2, 4))
    ((Digit(stride=4, size=2),), (Digit(stride=1, size=4),))
    """
    left = list(digits)
    found: list[Digits] = []
    for size in reversed(sizes):
        dim: list[Digit] = []
        while size > 1:
            digit = left.pop()
            if size % digit.size == 0:
                size //= digit.size
            elif digit.size % size == 0:
                left.append(Digit(digit.stride * size, digit.size // size))
                digit, size = Digit(digit.stride, size), 1
            else:
                return None
            dim.append(digit)
        found.append(merged(reversed(dim)))
    return tuple(reversed(found))


def complement(digits: Iterable[Digit], count: int) -> Digits:
    """Return the digits that are missing to ``count`` devices, most significant first."""
    found: list[Digit] = []
    end = count
    for digit in sorted((digit for digit in digits if digit.size > 1), key=lambda item: -item.stride):
        found.append(Digit(digit.end, end // digit.end))
        end = digit.stride
    found.append(Digit(1, end))
    return tuple(digit for digit in found if digit.size > 1)


def cut(digits: Iterable[Digit], ends: Iterable[int]) -> Digits:
    """Return digits cut where others end, the parts of each major first; ends that do not divide one are left out."""
    found: list[Digit] = []
    bounds = sorted(set(ends), reverse=True)
    for digit in digits:
        end = digit.end
        for bound in bounds:
            if digit.stride < bound < end and end % bound == 0 and bound % digit.stride == 0:
                found.append(Digit(bound, end // bound))
                end = bound
        found.append(Digit(digit.stride, end // digit.stride))
    return tuple(found)


def count_devices(digits: Iterable[Digit]) -> int:
    """Return the number of devices that digits tell apart."""
    return prod(digit.size for digit in digits)
