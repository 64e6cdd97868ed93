"""Folding: the tree of groups that a block of ops is shown as.

Ops are folded by the layers of their name stacks; where they have none, by repetition. Layers that are numbered, and
pieces that repeat, are one group that says how many there are. What is still long after that is folded by lines of the
source, and at last cut into parts, so that no group shows more than can be read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby, takewhile

from attrs import evolve, field

from shardy_py.explain.explore.updates import OPTIMIZER
from shardy_py.values import define, frozen

MOST_CHILDREN = 60
PART = 40
_FEWEST = 2
_FEWEST_LAYERS = 3
_FEW_OPS = 3
_NUMBER = re.compile(r"\d+")


@frozen(eq=False)
class Leaf:
    """An op, as folding sees it.

    Args:
        row: Its number in the table of ops.
        path: The names of its layers.
        place: The line of the source, or "".
        key: What is equal for ops that do the same.
        is_named: Whether the op has a name stack of its own; calls and copies of constants have none.
    """

    row: int
    path: tuple[str, ...] = ()
    place: str = ""
    key: Hashable = None
    is_named: bool = True


@define(eq=False)
class Fold:
    """A group.

    Args:
        name: Its name.
        kind: ``layer``, ``repeat``, ``repeats``, ``optimizer``, ``line`` or ``part``.
        children: The ops and groups in it, in program order.
    """

    name: str
    kind: str
    children: list[Leaf | Fold] = field(factory=list)


Items = Sequence[Leaf | Fold]


def fold(leaves: Sequence[Leaf]) -> list[Leaf | Fold]:
    """Return the ops of a block as a tree.

    Args:
        leaves: The ops, in program order.
    """
    updates = [evolve(leaf, path=leaf.path[1:]) for leaf in leaves if _is_update(leaf)]
    others = [leaf for leaf in leaves if not _is_update(leaf)]
    folded = _by_layer(others, _common_prefix(others))
    if not any(isinstance(item, Fold) for item in folded):
        folded = _by_repetition(others)
    if updates:
        # Compilers move updates to anywhere in a program: their group stands at its end.
        folded.append(Fold(OPTIMIZER, OPTIMIZER, _shorten(_by_layer(updates, 0))))
    return _shorten(folded)


def with_neighbours(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return ops such that those without a name stack have the layers that the ops before and behind them share."""
    before: list[Leaf | None] = []
    named: Leaf | None = None
    for leaf in leaves:
        named = leaf if leaf.is_named and not _is_update(leaf) else named
        before.append(named)
    merged: list[Leaf] = []
    behind: Leaf | None = None
    for leaf, earlier in zip(reversed(leaves), reversed(before), strict=True):
        behind = leaf if leaf.is_named and not _is_update(leaf) else behind
        if not leaf.is_named and earlier is not None and behind is not None:
            leaf = evolve(leaf, path=_shared(earlier.path, behind.path))
        merged.append(leaf)
    return merged[::-1]


def _is_update(leaf: Leaf) -> bool:
    """Return whether an op updates a parameter; compilers move such ops to anywhere in a program."""
    return leaf.path[:1] == (OPTIMIZER,)


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that two paths begin with alike."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return tuple(name for name, _ in alike)


def _common_prefix(leaves: Sequence[Leaf]) -> int:
    """Return how many names the paths of all ops that have one begin with alike."""
    paths = {leaf.path for leaf in leaves if leaf.path}
    depth = 0
    while paths and len({path[: depth + 1] for path in paths}) == 1 and all(len(path) > depth for path in paths):
        depth += 1
    return depth


def _by_layer(leaves: Sequence[Leaf], depth: int) -> list[Leaf | Fold]:
    groups: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        if len(leaf.path) > depth:
            groups.setdefault(leaf.path[depth], []).append(leaf)
    folded: list[Leaf | Fold] = []
    for leaf in leaves:
        name = leaf.path[depth] if len(leaf.path) > depth else None
        members = groups.get(name, []) if name is not None else []
        if name is None or len(members) < _FEWEST:
            folded.append(leaf)
        elif members[0] is leaf:
            folded.append(_layer(name, members, depth + 1))
    return _join_numbered(folded)


def _join_numbered(items: Items) -> list[Leaf | Fold]:
    """Return items with layers behind each other whose names differ in numbers only as one group."""
    joined: list[Leaf | Fold] = []
    for stem, run in groupby(items, _stem):
        layers = list(run)
        if stem is not None and len(layers) >= _FEWEST_LAYERS and len(layers) < len(items):
            names = [item.name for item in layers if isinstance(item, Fold)]
            joined.append(Fold(f"{names[0]} … {names[-1]} x{len(layers)}", "repeats", layers))
        else:
            joined.extend(layers)
    return joined


def _stem(item: Leaf | Fold) -> str | None:
    """Return the name of a numbered layer without its numbers; None for other items."""
    if isinstance(item, Leaf) or item.name.startswith("%") or not _NUMBER.search(item.name):
        return None
    return _NUMBER.sub("#", item.name)


def _layer(name: str, members: Sequence[Leaf], depth: int) -> Fold:
    """Return the group of a layer; a layer that is all of another one shares a group with it."""
    inside = {leaf.path[depth] if len(leaf.path) > depth else None for leaf in members}
    only = next(iter(inside))
    if len(inside) == 1 and only is not None:
        return _layer(f"{name}/{only}", members, depth + 1)
    return Fold(name, "layer", _shorten(_by_layer(members, depth)))


def _by_repetition(leaves: Sequence[Leaf]) -> list[Leaf | Fold]:
    folded: list[Leaf | Fold] = []
    position = 0
    for number, repeat in enumerate(find_repeats([leaf.key for leaf in leaves]), start=1):
        folded.extend(leaves[position : repeat.start])
        pieces: list[Leaf | Fold] = []
        for piece in range(repeat.count):
            start = repeat.start + piece * repeat.period
            name = f"repeat {number}: {piece + 1} of {repeat.count}"
            pieces.append(Fold(name, "repeat", _shorten(leaves[start : start + repeat.period])))
        folded.append(Fold(f"repeat {number} x{repeat.count}", "repeats", pieces))
        position = repeat.stop
    folded.extend(leaves[position:])
    return folded


def _shorten(items: Items) -> list[Leaf | Fold]:
    """Return at most `MOST_CHILDREN` items in the place of many."""
    if len(items) <= MOST_CHILDREN:
        return list(items)
    lines = _by_line(items)
    return lines if len(lines) <= MOST_CHILDREN else _in_parts(_runs_in_parts(lines))


def _by_line(items: Items) -> list[Leaf | Fold]:
    """Return items with the ops of each line of the source in a group, where that makes it at most half as long."""
    lines: dict[str, list[Leaf]] = {}
    for item in items:
        if isinstance(item, Leaf) and item.place:
            lines.setdefault(item.place, []).append(item)
    done = set[str]()
    folded: list[Leaf | Fold] = []
    for item in items:
        place = item.place if isinstance(item, Leaf) else ""
        if not place or len(lines[place]) < _FEWEST:
            folded.append(item)
        elif place not in done:
            done.add(place)
            folded.append(Fold(place, "line", _in_parts(lines[place])))
    return folded if 2 * len(folded) <= len(items) else list(items)


def _runs_in_parts(items: Items) -> list[Leaf | Fold]:
    """Return items with the ops between two groups as one group, so that groups stay in sight."""
    if not any(isinstance(item, Fold) for item in items):
        return list(items)
    folded: list[Leaf | Fold] = []
    for is_leaf, run in groupby(items, lambda item: isinstance(item, Leaf)):
        ops = list(run)
        is_long = is_leaf and len(ops) > _FEW_OPS
        folded.extend([Fold(f"{len(ops)} ops", "part", _in_parts(ops))] if is_long else ops)
    return folded


def _in_parts(items: Items) -> list[Leaf | Fold]:
    """Return items in parts of `PART`, and these in parts again, until they are few."""
    parts = list(items)
    while len(parts) > MOST_CHILDREN:
        starts = range(0, len(parts), PART)
        parts = [_part(parts[start : start + PART], number, len(starts)) for number, start in enumerate(starts, 1)]
    return parts


def _part(items: list[Leaf | Fold], number: int, count: int) -> Leaf | Fold:
    return items[0] if len(items) == 1 else Fold(f"part {number} of {count}", "part", items)


def visit(items: Items, enter: Callable[[Fold, int], int], leaf: Callable[[Leaf, int], None], *, parent: int) -> None:
    """Visit a tree, groups before their members.

    Args:
        items: The tree.
        enter: Called with each group and the number of the one around it; returns its number.
        leaf: Called with each op and the number of its group.
        parent: The number of the group around the tree.
    """
    stack: list[tuple[Leaf | Fold, int]] = [(item, parent) for item in reversed(items)]
    while stack:
        item, around = stack.pop()
        if isinstance(item, Leaf):
            leaf(item, around)
            continue
        number = enter(item, around)
        stack.extend((child, number) for child in reversed(item.children))


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
        key=lambda repeat: (repeat.period * repeat.count, -repeat.period),
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
