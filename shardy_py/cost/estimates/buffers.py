"""Buffers of a program on one device, and which of them share memory, as XLA's buffer_assignment.cc decides it.

Each result of the main function has memory of its own from the start. A temporary value lies in that of a result if it
fits and nothing else is there meanwhile, the largest first; all others lie in one heap, whose size is the most that is
needed at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from attrs import field

from shardy_py.values import define, frozen


@frozen
class Ticks:
    """Times, as runs of neighbours.

    Args:
        runs: The first and the last time of each run, in order; something lies between one run and the next.
    """

    runs: tuple[tuple[int, int], ...] = ()

    def __or__(self, other: Ticks) -> Ticks:
        """Return the times of both.

        >>> (ticks_between(1, 3) | ticks_between(7, 8) | ticks_between(4, 5)).runs
        ((1, 5), (7, 8))
        """
        runs: list[tuple[int, int]] = []
        for start, stop in sorted((*self.runs, *other.runs)):
            if runs and start <= runs[-1][1] + 1:
                runs[-1] = runs[-1][0], max(runs[-1][1], stop)
            else:
                runs.append((start, stop))
        return Ticks(tuple(runs))

    def common_runs(self, other: Ticks) -> Iterator[tuple[int, int]]:
        """Yield the first and the last time of each run of times that both have."""
        few, many = sorted((self.runs, other.runs), key=len)
        for start, stop in few:
            # The last time of a run is at least its first one.
            number = bisect_left(many, start, key=_last)
            while number < len(many) and many[number][0] <= stop:
                yield max(start, many[number][0]), min(stop, many[number][1])
                number += 1

    def mask(self) -> int:
        """Return a number with one bit per time, so that two of them meet where their bits do.

        >>> bin((ticks_between(1, 2) | ticks_between(5, 5)).mask())
        '0b100110'
        """
        bits = 0
        for start, stop in self.runs:
            bits |= (1 << stop + 1) - (1 << start)
        return bits


def _last(run: tuple[int, int]) -> int:
    return run[1]


def ticks_between(start: int, stop: int) -> Ticks:
    """Return all times from the first to the last one."""
    return Ticks(((start, stop),))


@define(eq=False)
class ValueBuffer:
    """Memory that some values have one after the other.

    Args:
        bytes: Its size.
        ticks: The times at which one of the values is there.
        is_argument: Whether it is the memory of a donated argument.
        is_result: Whether a result of the main function lies there at the end.
    """

    bytes: int
    ticks: Ticks = Ticks()
    is_argument: bool = False
    is_result: bool = False

    def absorb(self, other: ValueBuffer) -> None:
        """Take over the values of another buffer."""
        self.bytes = max(self.bytes, other.bytes)
        self.ticks |= other.ticks
        self.is_argument |= other.is_argument
        self.is_result |= other.is_result


@define(eq=False)
class BufferGroups:
    """Values by the buffer that they share with others."""

    _leaders: dict[int, int] = field(factory=dict, init=False)
    _buffers: dict[int, ValueBuffer] = field(factory=dict, init=False)

    def add(self, key: int, buffer: ValueBuffer) -> None:
        """Add a value with a buffer of its own."""
        self._buffers[key] = buffer

    def __contains__(self, key: int) -> bool:
        return self._leader(key) in self._buffers

    def __getitem__(self, key: int) -> ValueBuffer:
        """Return the buffer of a value."""
        return self._buffers[self._leader(key)]

    def join(self, first: int, second: int) -> None:
        """Let two values share a buffer."""
        first, second = self._leader(first), self._leader(second)
        if first != second and first in self._buffers and second in self._buffers:
            self._buffers[first].absorb(self._buffers.pop(second))
            self._leaders[second] = first

    def remove(self, key: int) -> None:
        """Remove a value and its buffer."""
        self._buffers.pop(self._leader(key), None)

    def __iter__(self) -> Iterator[ValueBuffer]:
        return iter(self._buffers.values())

    def _leader(self, key: int) -> int:
        while key in self._leaders:
            key = self._leaders[key]
        return key


def heap_bytes(buffers: Iterable[ValueBuffer], ticks: int, *, reserves_results: bool) -> list[int]:
    """Return the bytes that the heap holds at each time.

    Args:
        buffers: All buffers.
        ticks: The number of times.
        reserves_results: Whether results, and arguments that become some, have memory of their own, in which others
            may lie; otherwise results lie in the heap once they are there.
    """
    allocated: list[ValueBuffer] = []
    temporaries: list[ValueBuffer] = []
    for buffer in buffers:
        is_allocated = buffer.is_argument or (reserves_results and buffer.is_result)
        (allocated if is_allocated else temporaries).append(buffer)
    if reserves_results:
        temporaries = _not_in_results(allocated, temporaries)
    changes = [0] * (ticks + 1)
    for buffer in temporaries:
        for start, stop in buffer.ticks.runs:
            changes[start] += buffer.bytes
            changes[stop + 1] -= buffer.bytes
    held, total = [], 0
    for change in changes[:ticks]:
        total += change
        held.append(total)
    return held


def _not_in_results(allocated: Sequence[ValueBuffer], temporaries: Iterable[ValueBuffer]) -> list[ValueBuffer]:
    """Return the temporary values that fit into the memory of no result, the largest first."""
    # A result that is as large is placed before a temporary value.
    places = sorted((buffer for buffer in allocated if buffer.bytes), key=lambda place: place.bytes)
    # There are hundreds of places, and most temporary values lie in none of them: occupied ticks are bits.
    occupied = [place.ticks.mask() for place in places]
    remaining, first = [], len(places)
    for buffer in sorted(temporaries, key=lambda item: -item.bytes):
        while first and places[first - 1].bytes >= buffer.bytes:
            first -= 1
        bits = buffer.ticks.mask()
        for number in range(first, len(places)):
            if not occupied[number] & bits:
                occupied[number] |= bits
                break
        else:
            remaining.append(buffer)
    return remaining
