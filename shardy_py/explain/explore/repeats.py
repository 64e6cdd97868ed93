"""Repetitions in a sequence: the layers of a program whose ops have no names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from shardy_py.values import frozen

_SHORTEST = 4
_WINDOW = 6
_PERIODS = 12
_DEPTH = 6


@frozen
class Repeat:
    """A part of a sequence that consists of equal pieces.

    Args:
        start: The position of the first piece.
        period: The length of a piece.
        count: The number of pieces, at least two.
    """

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """The position behind the last piece."""
        return self.start + self.period * self.count


def find_repeats(keys: Sequence[Hashable]) -> tuple[Repeat, ...]:
    """Return the repetitions in a sequence, in order; none shares an item with another one.

    The longest is found first, then those before and behind it.

    >>> find_repeats("xabcdabcdabcdy")
    (Repeat(start=1, period=4, count=3),)
    """
    return tuple(_find(keys, 0, len(keys), _DEPTH))


def _find(keys: Sequence[Hashable], start: int, stop: int, depth: int) -> Iterator[Repeat]:
    if depth == 0 or stop - start < 2 * _SHORTEST:
        return
    best = max(
        (_longest(keys, start, stop, period) for period in _periods(keys, start, stop)),
        key=lambda one: (one.period * one.count, -one.period),
        default=None,
    )
    if best is None or best.count < 2:
        return
    yield from _find(keys, start, best.start, depth - 1)
    yield best
    yield from _find(keys, best.stop, stop, depth - 1)


def _periods(keys: Sequence[Hashable], start: int, stop: int) -> list[int]:
    """Return the distances at which short windows most often come again."""
    last: dict[tuple[Hashable, ...], int] = {}
    gaps: Counter[int] = Counter()
    for position in range(start, stop - _WINDOW + 1):
        window = tuple(keys[position : position + _WINDOW])
        if window in last:
            gaps[position - last[window]] += 1
        last[window] = position
    return [gap for gap, _ in gaps.most_common(_PERIODS) if gap >= _SHORTEST]


def _longest(keys: Sequence[Hashable], start: int, stop: int, period: int) -> Repeat:
    """Return the longest repetition of a period; its count is 1 where there is none."""
    best, run = Repeat(start, period, 1), 0
    for position in range(start, stop - period):
        run = run + 1 if keys[position] == keys[position + period] else 0
        count = run // period + 1
        if count > best.count:
            best = Repeat(position - run + 1, period, count)
    return best
