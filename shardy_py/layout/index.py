"""Where an element lies: multi-dimensional index to linear index and back, in plain integers or numpy arrays.

Tiling by ``t`` pads a dimension of size ``d`` to whole tiles and splits it into ``ceil(d / t)`` tiles and the place
inside a tile; all the places inside move to the minor end and keep their order. A tile that names more dimensions than
there are sees missing major dimensions of size one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from attrs import frozen

from shardy_py.arguments import shown
from shardy_py.integers import as_integer
from shardy_py.layout.shape import Shape
from shardy_py.layout.values import COMBINE, Tile, invalid


@frozen
class _Level:
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
            [_linear([index[at] for at in group], [self.sizes[at] for at in group]) for group in self.groups]
        )

    def split(self, merged: Sequence[Any]) -> list[Any]:
        """Return the index after tiling of one after merging."""
        outer = len(merged) - len(self.tile)
        inner = merged[outer:]
        counts = [value // tile for value, tile in zip(inner, self.tile, strict=True)]
        return [*merged[:outer], *counts, *(value % tile for value, tile in zip(inner, self.tile, strict=True))]

    def backward(self, index: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the index before tiling, and whether it lies inside the sizes."""
        count = len(self.tile)
        outer = len(self.merged) - count
        pairs = zip(index[outer : outer + count], index[outer + count :], self.tile, strict=True)
        merged = [*index[:outer], *(number * tile + place for number, place, tile in pairs)]
        inside: Any = True
        for value, size in zip(merged, self.merged, strict=True):
            inside = inside & (value < size)
        found: list[Any] = []
        for value, group in zip(merged, self.groups, strict=True):
            found += _unravel(value, [self.sizes[at] for at in group])
        # The added ones are 0 wherever an element lies.
        return found[self.added :], inside


def expanded_sizes(shape: Shape) -> tuple[int, ...]:
    """Return the sizes after all tiling, major first; their product is the number of elements before tail padding.

    >>> from shardy_py.layout.parse import parse_array
    >>> expanded_sizes(parse_array("f32[8,8]{1,0:T(2,4)(2,1,1,1)}"))
    (2, 2, 2, 4, 2, 1, 1, 1)

    Raises:
        VerificationError: a dimension is unbounded.
    """
    levels = _levels(shape)
    return levels[-1].tiled if levels else shape.physical_sizes


def physical_strides(shape: Shape) -> tuple[int, ...]:
    """Return how many elements apart neighbours are, for each of the `expanded_sizes`.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return _strides(expanded_sizes(shape))


def strides(shape: Shape) -> tuple[int, ...]:
    """Return how many elements apart neighbours along each dimension are.

    >>> from shardy_py.layout.parse import parse_array
    >>> strides(parse_array("f32[2,3,4]{0,2,1}"))
    (1, 8, 2)

    Raises:
        VerificationError: the layout is tiled, so that the distance varies, or a dimension is unbounded.
    """
    if shape.layout.tiles:
        message = f"the dimensions of the tiled {shape} have no constant strides"
        raise invalid("tiled-layout", message, hint="see physical_strides and expanded_sizes")
    physical = _strides(shape.physical_sizes)
    return tuple(stride for _, stride in sorted(zip(shape.layout.major_to_minor, physical, strict=True)))


def linear_index(shape: Shape, index: Sequence[Any]) -> Any:
    """Return the position of an element in memory, counted in elements.

    Args:
        shape: The array.
        index: One integer per dimension, or one numpy array per dimension, which broadcast together.

    >>> from shardy_py.layout.parse import parse_array
    >>> linear_index(parse_array("f32[3,5]{1,0:T(2,2)}"), (2, 3))
    17

    Raises:
        VerificationError: the index does not lie inside the array, or has another number of dimensions.
    """
    _check(shape, index)
    current: list[Any] = [index[number] for number in shape.layout.major_to_minor]
    sizes = shape.physical_sizes
    for level in _levels(shape):
        current, sizes = level.forward(current), level.tiled
    return _linear(current, sizes)


def multi_index(shape: Shape, position: int) -> tuple[int, ...] | None:
    """Return the index of the element at a position in memory, or None where padding lies.

    >>> from shardy_py.layout.parse import parse_array
    >>> tiled = parse_array("f32[3,5]{1,0:T(2,2)}")
    >>> multi_index(tiled, 17), multi_index(tiled, 9)
    ((2, 3), None)

    Raises:
        VerificationError: the position lies outside the memory of the array.
    """
    count = tail_padded(shape, prod(expanded_sizes(shape)))
    if not 0 <= position < count:
        raise invalid("index-out-of-range", f"{shape} has no position {position}: it takes {count} elements")
    index, inside = multi_indices(shape, position)
    return index if inside else None


def multi_indices(shape: Shape, positions: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the indices at positions in memory, and which of the positions hold an element.

    Args:
        shape: The array.
        positions: An integer or a numpy array of them; not negative.

    Returns:
        One value or array per dimension, and whether an element lies there; where not, the index means nothing.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    _check_integers(positions)
    sizes = expanded_sizes(shape)
    inside: Any = positions < prod(sizes)
    current = _unravel(positions, sizes)
    for level in reversed(_levels(shape)):
        current, here = level.backward(current)
        inside = inside & here
    logical = sorted(zip(shape.layout.major_to_minor, current, strict=True), key=lambda pair: pair[0])
    return tuple(value for _, value in logical), inside


def padded_position(shape: Shape, merged: Sequence[int]) -> int:
    """Return the position in memory of a place in the padded array, which may be padding.

    Args:
        shape: The array.
        merged: The physical index, major first, after the first tile combined dimensions; it may start with more
            dimensions of size one.
    """
    levels = _levels(shape)
    if not levels:
        found: int = _linear(merged[len(merged) - shape.rank :], shape.physical_sizes)
        return found
    current, sizes = levels[0].split(merged[len(merged) - len(levels[0].merged) :]), levels[0].tiled
    for level in levels[1:]:
        current, sizes = level.forward(current), level.tiled
    position: int = _linear(current, sizes)
    return position


def tail_padded(shape: Shape, count: int) -> int:
    """Return a number of elements rounded up to the tail padding of the layout."""
    alignment = shape.layout.tail_padding
    return -(-count // alignment) * alignment


def combined(sizes: Sequence[int], tile: Tile) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes with those merged that a tile combines, and the sizes of the tile left.

    >>> combined((2, 7, 8, 11, 10), Tile((COMBINE, COMBINE, 2, COMBINE, 3)))
    ((112, 110), (2, 3))
    """
    level = _level(sizes, tile)
    return level.merged, level.tile


def _levels(shape: Shape) -> list[_Level]:
    sizes, levels = shape.physical_sizes, []
    for tile in shape.layout.tiles:
        level = _level(sizes, tile)
        levels.append(level)
        sizes = level.tiled
    return levels


def _level(sizes: Sequence[int], tile: Tile) -> _Level:
    added = max(0, len(tile.sizes) - len(sizes))
    padded = (1,) * added + tuple(sizes)
    outer = len(padded) - len(tile.sizes)
    groups, start = [range(at, at + 1) for at in range(outer)], outer
    for at, size in enumerate(tile.sizes, outer):
        if size is not COMBINE:
            groups.append(range(start, at + 1))
            start = at + 1
    merged = tuple(prod(padded[group.start : group.stop]) for group in groups)
    return _Level(added, padded, tuple(groups), merged, tuple(size for size in tile.sizes if size is not None))


def _check(shape: Shape, index: Sequence[Any]) -> None:
    if isinstance(index, (str, bytes)) or not (isinstance(index, Sequence) or hasattr(index, "__array__")):
        raise invalid("invalid-argument", f"the index is {shown(index)}, not a sequence of integers")
    if len(index) != shape.rank:
        raise invalid("rank-mismatch", f"the index has {len(index)} numbers, {shape} has {shape.rank} dimensions")
    for number, (value, size) in enumerate(zip(index, shape.static_bounds, strict=True)):
        _check_integers(value)
        good = (value >= 0) & (value < size)
        if not (good if isinstance(good, bool) else good.all()):
            message = f"the index is not inside dimension {number} of {shape}, which has size {size}"
            raise invalid("index-out-of-range", message)


def _check_integers(value: Any) -> None:
    """Check that a part of an index is an integer, or an array of them."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if as_integer(value) is None and kind not in ("i", "u"):
        raise invalid("invalid-argument", f"{shown(value)} is neither an integer nor an array of integers")


def _linear(index: Sequence[Any], sizes: Sequence[int]) -> Any:
    position: Any = 0
    for value, size in zip(index, sizes, strict=True):
        position = position * size + value
    return position


def _unravel(position: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the index in row-major order; the most major number takes what is left over."""
    index = []
    for size in reversed(sizes[1:]):
        divisor = max(size, 1)
        index.append(position % divisor)
        position = position // divisor
    return [position, *reversed(index)] if len(sizes) else []


def _strides(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(sizes[number + 1 :]) for number in range(len(sizes)))
