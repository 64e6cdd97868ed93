"""Tile assignments of HLO, and device numbers as digits, which mesh axes and tile dimensions have in common.

An axis or a tile dimension is one or more digits of the position of a device. A digit has a stride, which is the
product of the sizes of all digits less significant than it, and a size. Axes that several meshes or tilings have in
common are the digits they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.values import define, frozen


@define(frozen=True, slots=False, cache_hash=True, repr=False)
class TileAssignment:
    """An array of devices; make one by `iota`, `of_digits` or `of_devices`.

    Args:
        dims: The sizes of the array.
        reshape: The sizes by which 0, 1, 2... is made an array first; () if the devices are listed.
        permutation: How the dimensions of that array are transposed before it takes the final sizes.
        listed: The devices in row-major order, where they are listed.
    """

    dims: tuple[int, ...]
    reshape: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    listed: tuple[int, ...] = ()

    @classmethod
    def iota(cls, dims: Sequence[int], reshape: Sequence[int] = (), permutation: Sequence[int] = ()) -> TileAssignment:
        """Return the assignment printed ``[dims]<=[reshape]T(permutation)``, in its shortest form.

        Raises:
            VerificationError: the sizes do not fit together, or it is not a permutation.

        >>> print(TileAssignment.iota((2, 4), (2, 2, 2), (2, 0, 1)))
        [2,4]<=[4,2]T(1,0)
        """
        reshape = tuple(reshape) or (prod(dims),)
        permutation = tuple(permutation) or tuple(range(len(reshape)))
        _check_sizes((*dims, *reshape))
        if prod(reshape) != prod(dims):
            raise _invalid(f"the tiles {list(dims)} are {prod(dims)}, the devices {list(reshape)} are {prod(reshape)}")
        if sorted(permutation) != list(range(len(reshape))):
            raise _invalid(f"{list(permutation)} is not a permutation of the {len(reshape)} dimensions of the devices")
        all_digits = digits_of(reshape)
        return cls.of_digits(dims, [all_digits[number] for number in permutation])

    @classmethod
    def of_digits(cls, dims: Sequence[int], digits: Sequence[Digit]) -> TileAssignment:
        """Return the assignment in which the devices have these digits, major first."""
        digits = merged(digits)
        order = sorted(range(len(digits)), key=lambda number: -digits[number].stride)
        reshape = tuple(digits[number].size for number in order) or (1,)
        permutation = tuple(order.index(number) for number in range(len(digits))) or (0,)
        return cls(tuple(dims), reshape, permutation)

    @classmethod
    def of_devices(cls, dims: Sequence[int], devices: Sequence[int]) -> TileAssignment:
        """Return the assignment printed ``[dims]devices``.

        Raises:
            VerificationError: not every device from 0 has one tile.
        """
        _check_sizes(dims)
        if len(devices) != prod(dims) or sorted(devices) != list(range(len(devices))):
            raise _invalid(f"the devices of {prod(dims)} tiles are not 0 to {prod(dims) - 1}, each once")
        return cls(tuple(dims), listed=tuple(devices))

    @property
    def size(self) -> int:
        """The number of tiles, which is that of devices."""
        return prod(self.dims)

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The device of every tile, in row-major order."""
        return self.listed or tuple(positions_of(self._own_digits))

    def array(self) -> Any:
        """Return the devices as tuples nested as deeply as there are dimensions.

        >>> TileAssignment.iota((2, 2), (2, 2), (1, 0)).array()
        ((0, 2), (1, 3))
        """
        rows: Sequence[Any] = self.devices
        for size in reversed(self.dims[1:]):
            rows = [tuple(rows[start : start + size]) for start in range(0, len(rows), size)]
        return tuple(rows)

    @property
    def _own_digits(self) -> Digits:
        all_digits = digits_of(self.reshape)
        return tuple(all_digits[number] for number in self.permutation)

    def digits(self, order: Sequence[int] = (), *, is_last_sorted: bool = False) -> tuple[Digits, ...] | None:
        """Return of which digits of the device's position each dimension consists.

        Args:
            order: The devices by position; 0, 1, 2... by default.
            is_last_sorted: Whether the devices along the last dimension are a set, in no order.

        Returns:
            The digits of every dimension; None if it cannot be said by digits.
        """
        if self.listed or order:
            if order and len(order) != self.size:
                return None
            position_of = {device: position for position, device in enumerate(order or range(self.size))}
            positions = [position_of[device] for device in self.devices]
            device_digits = find_digits(_sorted_rows(positions, self.dims[-1]) if is_last_sorted else positions)
        else:
            device_digits = self._own_digits
        return None if device_digits is None else split_digits(device_digits, self.dims)

    def transposed(self, permutation: Sequence[int]) -> TileAssignment:
        """Return the array with its dimensions in another order."""
        dims = tuple(self.dims[number] for number in permutation)
        digits = None if self.listed else self.digits()
        if digits is not None:
            return TileAssignment.of_digits(dims, [digit for number in permutation for digit in digits[number]])
        strides = digits_of(self.dims)
        positions = positions_of([strides[number] for number in permutation])
        return TileAssignment(dims, listed=tuple(self.devices[position] for position in positions))

    def sorted_last(self) -> TileAssignment:
        """Return the array with the devices along its last dimension sorted, as XLA keeps those that have the same."""
        digits = None if self.listed else self.digits()
        if digits is None:
            return TileAssignment(self.dims, listed=tuple(_sorted_rows(self.devices, self.dims[-1])))
        last = sorted(digits[-1], key=lambda digit: -digit.stride)
        return TileAssignment.of_digits(self.dims, [digit for dim in (*digits[:-1], last) for digit in dim])

    def reshaped(self, dims: Sequence[int]) -> TileAssignment:
        """Return the same devices in the same order, as an array of other sizes."""
        return TileAssignment(tuple(dims), self.reshape, self.permutation, self.listed)

    def __str__(self) -> str:
        dims = _list(self.dims)
        if self.listed:
            return f"[{dims}]{_list(self.listed)}"
        is_sorted = all(before < after for before, after in pairwise(self.permutation))
        return f"[{dims}]<=[{_list(self.reshape)}]" + ("" if is_sorted else f"T({_list(self.permutation)})")

    def __repr__(self) -> str:
        return f"TileAssignment({str(self)!r})"


def _sorted_rows(numbers: Sequence[int], width: int) -> list[int]:
    return [number for start in range(0, len(numbers), width) for number in sorted(numbers[start : start + width])]


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _check_sizes(sizes: Sequence[int]) -> None:
    if not sizes or min(sizes) < 1:
        raise _invalid(f"the sizes {list(sizes)} are not all positive")


def _invalid(message: str) -> VerificationError:
    return VerificationError(Diagnostic("invalid-tile-assignment", message))


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
    digits, stride = [], 1
    for size in reversed(sizes):
        digits.append(Digit(stride, size))
        stride *= size
    return tuple(reversed(digits))


def merged(digits: Iterable[Digit]) -> Digits:
    """Merge adjacent digits, and drop those of size one."""
    result: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if result and result[-1].stride == digit.end:
            digit = Digit(digit.stride, result.pop().size * digit.size)
        result.append(digit)
    return tuple(result)


def find_digits(positions: Sequence[int]) -> Digits | None:
    """Return the digits of which the positions are made, or None if they are not permuted digits.

    Args:
        positions: A permutation of 0, 1, 2...; an array in row-major order, whatever its dimensions.

    >>> find_digits([0, 2, 4, 6, 1, 3, 5, 7])
    (Digit(stride=1, size=2), Digit(stride=2, size=4))
    """
    rest, digits = positions, []
    while len(rest) > 1:
        stride = rest[1] - rest[0]
        run = 1
        while run < len(rest) and rest[run] == rest[0] + run * stride:
            run += 1
        if stride < 1 or len(rest) % run:
            return None
        digits.append(Digit(stride, run))
        rest = rest[::run]
    digits.reverse()
    return tuple(digits) if list(positions_of(digits)) == list(positions) else None


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
    parts: list[Digits] = []
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
        parts.append(merged(reversed(dim)))
    return tuple(reversed(parts))


def complement(digits: Iterable[Digit], count: int) -> Digits:
    """Return the digits that are missing to ``count`` devices, most significant first."""
    missing: list[Digit] = []
    end = count
    for digit in sorted((digit for digit in digits if digit.size > 1), key=lambda item: -item.stride):
        missing.append(Digit(digit.end, end // digit.end))
        end = digit.stride
    missing.append(Digit(1, end))
    return tuple(digit for digit in missing if digit.size > 1)


def cut(digits: Iterable[Digit], ends: Iterable[int]) -> Digits:
    """Split digits where others end, the parts of each major first; ends that do not divide a digit are skipped."""
    pieces: list[Digit] = []
    bounds = sorted(set(ends), reverse=True)
    for digit in digits:
        end = digit.end
        for bound in bounds:
            if digit.stride < bound < end and end % bound == 0 and bound % digit.stride == 0:
                pieces.append(Digit(bound, end // bound))
                end = bound
        pieces.append(Digit(digit.stride, end // digit.stride))
    return tuple(pieces)


def count_devices(digits: Iterable[Digit]) -> int:
    """Return the number of devices that digits tell apart."""
    return prod(digit.size for digit in digits)
