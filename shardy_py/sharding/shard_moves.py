"""Plan the moves of elements between the parts of a sharded dimension.

Parts are numbered along the dimension; a part of a dimension of n elements over k parts has ceil(n / k) of them, the
last parts fewer. Coordinates are places in the whole dimension, places count from the start of what a part has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from shardy_py.values import frozen


@frozen
class Run:
    """Elements in a row that a part has.

    Args:
        start: The coordinate of the first one.
        size: Their number.
        place: The place of the first one in the part.
    """

    start: int
    size: int
    place: int = 0


@frozen
class Move:
    """Elements that go from a part to a part, perhaps to itself.

    Args:
        source: The part that has them.
        target: The part that needs them.
        start: The place of the first one in the source.
        place: The place of the first one in the window of the target.
        size: Their number.
    """

    source: int
    target: int
    start: int
    place: int
    size: int


@frozen
class Round:
    """Moves that one collective permute makes: no part sends or gets twice.

    Args:
        moves: The moves.
    """

    moves: tuple[Move, ...]

    @property
    def is_local(self) -> bool:
        """True if no element leaves its part."""
        return all(move.source == move.target for move in self.moves)

    @property
    def size(self) -> int:
        """The number of elements that each part sends."""
        return max(move.size for move in self.moves)


@frozen
class Windows:
    """Elements in a row of a dimension that each part needs.

    Args:
        held: The runs that each part has.
        starts: The coordinate at which the window of each part begins.
        size: The size of all windows.
    """

    held: Sequence[Sequence[Run]]
    starts: Sequence[int]
    size: int


def own_runs(size: int, parts: int, shard_size: int, shift: int = 0) -> list[list[Run]]:
    """Return the runs of elements that each part of a dimension holds.

    Args:
        size: The number of all elements.
        parts: The number of parts.
        shard_size: The number of elements of a part, padding included.
        shift: The coordinate of the first element.

    >>> own_runs(5, 3, 2)
    [[Run(start=0, size=2, place=0)], [Run(start=2, size=2, place=0)], [Run(start=4, size=1, place=0)]]
    """
    counts = [min(shard_size, size - part * shard_size) for part in range(parts)]
    return [[Run(part * shard_size + shift, count)] if count > 0 else [] for part, count in enumerate(counts)]


def plan_rounds(held: Sequence[Sequence[Run]], starts: Sequence[int], size: int) -> list[Round]:
    """Return the rounds of moves after which each part has its window; rounds without communication come first.

    The elements of a window that no part has do not move. What a part has itself it takes from no other one.

    Args:
        held: The runs of each part.
        starts: The coordinate at which the window of each part begins.
        size: The size of all windows.

    >>> rounds = plan_rounds(own_runs(4, 2, 2), [-1, 1], 4)
    >>> [[(move.source, move.target, move.size) for move in item.moves] for item in rounds]
    [[(0, 0, 2), (1, 1, 2)], [(1, 0, 1), (0, 1, 1)]]
    """
    near = _Near(held)
    moves = [move for target in range(len(starts)) for move in _moves_to(target, held, near, starts[target], size)]
    local = [move for move in moves if move.source == move.target]
    remote = [move for move in moves if move.source != move.target]
    orders = (_by_distance(remote), _by_ends(remote))
    return [*_matched(local), *min(map(_matched, orders), key=sent_elements)]


def sent_elements(rounds: Sequence[Round]) -> int:
    """Return the number of elements that a part gets from others, in all rounds."""
    return sum(item.size for item in rounds if not item.is_local)


def covered(rounds: Sequence[Round], parts: int) -> list[tuple[int, int]]:
    """Return, per part, the range of its window that receives elements; (0, 0) where none arrive."""
    received: list[list[Move]] = [[] for _ in range(parts)]
    for item in rounds:
        for move in item.moves:
            received[move.target].append(move)
    return [
        (min(move.place for move in moves), max(move.place + move.size for move in moves)) if moves else (0, 0)
        for moves in received
    ]


class _Near:
    """The parts that have elements near a coordinate, found by bisection."""

    def __init__(self, held: Sequence[Sequence[Run]]) -> None:
        self._places = sorted((run.start, part) for part, runs in enumerate(held) for run in runs)
        self._longest = max((run.size for runs in held for run in runs), default=0)

    def parts(self, start: int, size: int) -> list[int]:
        """Return the parts that may have one of some elements in a row, in order."""
        first = bisect_left(self._places, (start - self._longest, 0))
        last = bisect_left(self._places, (start + size, 0))
        return sorted({part for _, part in self._places[first:last]})


def _moves_to(target: int, held: Sequence[Sequence[Run]], near: _Near, start: int, size: int) -> Iterator[Move]:
    local = list(_common(target, target, held[target], start, size))
    yield from local
    taken = _Taken()
    for move in local:
        taken.add(move)
    for source in near.parts(start, size):
        if source == target:
            continue
        for move in _common(source, target, held[source], start, size):
            if taken.add(move):
                yield move


class _Taken:
    """The ranges of a window that arrive, none within another one: where they begin and end, both in order."""

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def add(self, move: Move) -> bool:
        """Take what a move brings; return False where one range has all of it already."""
        low, high = move.place, move.place + move.size
        first = bisect_right(self._lows, low)
        if first and self._highs[first - 1] >= high:
            return False
        last = bisect_right(self._highs, high, first)
        self._lows[first:last], self._highs[first:last] = [low], [high]
        return True


def _common(source: int, target: int, runs: Sequence[Run], start: int, size: int) -> Iterator[Move]:
    for run in runs:
        low, high = max(run.start, start), min(run.start + run.size, start + size)
        if low < high:
            yield Move(source, target, run.place + low - run.start, low - start, high - low)


def _by_distance(moves: Sequence[Move]) -> list[Move]:
    """Sort moves by size, then by distance, so that pieces have equal offsets on all parts."""
    return sorted(moves, key=lambda move: (-move.size, move.target - move.source, move.target))


def _by_ends(moves: Sequence[Move]) -> list[Move]:
    """Return large moves first, and first those of the parts that send or get most often, as these need most rounds."""
    sent, got = (Counter(getattr(move, end) for move in moves) for end in ("source", "target"))
    return sorted(moves, key=lambda move: (-move.size, -sent[move.source], -got[move.target], move.source, move.target))


def _matched(moves: Sequence[Move]) -> list[Round]:
    """Return rounds, each move in the first one in which its source does not send and its target gets nothing yet."""
    rounds: list[list[Move]] = []
    sends: dict[int, int] = {}  # The rounds in which a part sends, as bits: there may be a round per operand.
    gets: dict[int, int] = {}
    for move in moves:
        free = ~(sends.get(move.source, 0) | gets.get(move.target, 0))
        first = free & -free
        number = first.bit_length() - 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(move)
        sends[move.source] = sends.get(move.source, 0) | first
        gets[move.target] = gets.get(move.target, 0) | first
    return [Round(tuple(chosen)) for chosen in rounds]
