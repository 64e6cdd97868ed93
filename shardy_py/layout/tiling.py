"""Tiling of sizes and of indices, in integers, numpy arrays or index expressions.

Tiling by ``t`` pads a dimension of size ``d`` to whole tiles and splits it into ``ceil(d / t)`` tiles and the place
inside a tile; all the places inside move to the minor end and keep their order. A tile that names more dimensions than
there are sees missing major dimensions of size one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from shardy_py.layout.shape import Shape
from shardy_py.layout.values import COMBINE, Tile
from shardy_py.values import frozen

Limit = tuple[Any, int]
"""A value and what it is less than wherever an element lies."""


@frozen
class TileLevel:
    """One tile applied to sizes.

    Args:
        added: How many major dimensions of size one the tile sees before those there are.
        sizes: The sizes before, major first, with the added ones.
        groups: Which of them are merged: ranges that cover all of them.
        merged: The sizes after merging.
        tile: The tile sizes, of the last of the merged sizes.
    """

    added: int
    sizes: tuple[int, ...]
    groups: tuple[range, ...]
    merged: tuple[int, ...]
    tile: tuple[int, ...]

    @property
    def tiled(self) -> tuple[int, ...]:
        """The sizes after tiling."""
        outer = len(self.merged) - len(self.tile)
        counts = (-(-size // tile) for size, tile in zip(self.merged[outer:], self.tile, strict=True))
        return (*self.merged[:outer], *counts, *self.tile)

    def forward(self, index: Sequence[Any]) -> list[Any]:
        """Return the index after tiling."""
        index = [0] * self.added + list(index)
        return self.split(
            [linearized([index[at] for at in group], [self.sizes[at] for at in group]) for group in self.groups]
        )

    def split(self, merged: Sequence[Any]) -> list[Any]:
        """Return the index after tiling of one after merging."""
        outer = len(merged) - len(self.tile)
        inner = merged[outer:]
        counts = [value // tile for value, tile in zip(inner, self.tile, strict=True)]
        return [*merged[:outer], *counts, *(value % tile for value, tile in zip(inner, self.tile, strict=True))]

    def backward(self, index: Sequence[Any]) -> tuple[list[Any], list[Limit]]:
        """Return the index before tiling, and the limits that padding is beyond."""
        count = len(self.tile)
        outer = len(self.merged) - count
        pairs = zip(index[outer : outer + count], index[outer + count :], self.tile, strict=True)
        merged = [*index[:outer], *(number * tile + place for number, place, tile in pairs)]
        expanded: list[Any] = []
        for value, group in zip(merged, self.groups, strict=True):
            expanded += unraveled(value, [self.sizes[at] for at in group])
        # The added ones are 0 wherever an element lies.
        return expanded[self.added :], [*zip(merged, self.merged, strict=True)]


def tiled_sizes(shape: Shape) -> tuple[int, ...]:
    """Return the sizes after all tiling, major first."""
    levels = levels_of(shape)
    return levels[-1].tiled if levels else shape.physical_sizes


def position_of(shape: Shape, index: Sequence[Any]) -> Any:
    """Return the position of an element in memory, counted in elements; the index is not checked."""
    current: list[Any] = [index[number] for number in shape.layout.major_to_minor]
    sizes = shape.physical_sizes
    for level in levels_of(shape):
        current, sizes = level.forward(current), level.tiled
    return linearized(current, sizes)


def index_at(shape: Shape, position: Any) -> tuple[list[Any], list[Limit]]:
    """Return the index at a position in memory, and the limits that tell elements from padding."""
    current = unraveled(position, tiled_sizes(shape))
    limits: list[Limit] = []
    for level in reversed(levels_of(shape)):
        current, limits_of_level = level.backward(current)
        limits += limits_of_level
    logical = sorted(zip(shape.layout.major_to_minor, current, strict=True), key=lambda pair: pair[0])
    return [value for _, value in logical], limits


def combined(sizes: Sequence[int], tile: Tile) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes with those merged that a tile combines, and the sizes of the tile left.

    >>> combined((2, 7, 8, 11, 10), Tile((COMBINE, COMBINE, 2, COMBINE, 3)))
    ((112, 110), (2, 3))
    """
    level = _level(sizes, tile)
    return level.merged, level.tile


def levels_of(shape: Shape) -> list[TileLevel]:
    """Return the tiles of a shape applied to its physical sizes, one after the other."""
    sizes, levels = shape.physical_sizes, []
    for tile in shape.layout.tiles:
        level = _level(sizes, tile)
        levels.append(level)
        sizes = level.tiled
    return levels


def _level(sizes: Sequence[int], tile: Tile) -> TileLevel:
    added = max(0, len(tile.sizes) - len(sizes))
    padded = (1,) * added + tuple(sizes)
    outer = len(padded) - len(tile.sizes)
    groups, start = [range(at, at + 1) for at in range(outer)], outer
    for at, size in enumerate(tile.sizes, outer):
        if size is not COMBINE:
            groups.append(range(start, at + 1))
            start = at + 1
    merged = tuple(prod(padded[group.start : group.stop]) for group in groups)
    return TileLevel(added, padded, tuple(groups), merged, tuple(size for size in tile.sizes if size is not None))


def linearized(index: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return the place of an index, the last number varying fastest."""
    position: Any = 0
    for value, size in zip(index, sizes, strict=True):
        position = position * size + value
    return position


def unraveled(position: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the index in row-major order; the most major number takes the remainder."""
    index = []
    for size in reversed(sizes[1:]):
        divisor = max(size, 1)
        index.append(position % divisor)
        position = position // divisor
    return [position, *reversed(index)] if len(sizes) else []
