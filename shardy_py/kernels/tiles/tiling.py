"""Tiles of tensors, and which tile of an operand a tile of a result is computed from: by indexing maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from shardy_py.indexing import (
    Binary,
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    compose,
    dim,
    simplify,
    symbol,
)
from shardy_py.indexing.expressions import ZERO, variables_of
from shardy_py.values import frozen


@frozen(slots=False, cache_hash=True)
class TensorTile:
    """A tile of a tensor; its place depends on the number of the tile of the result, ``d0``.

    Args:
        count: The number of tiles.
        offsets: The first index along every dimension.
        sizes: The number of elements along every dimension, a power of two.
        strides: The distance of neighbours along every dimension.
    """

    count: int
    offsets: tuple[Expression, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @cached_property
    def map(self) -> IndexingMap:
        """The map from the number of the tile, and the index in the tile as symbols, to the index in the tensor."""
        axes = zip(self.offsets, self.strides, strict=True)
        results = tuple(offset + symbol(number) * stride for number, (offset, stride) in enumerate(axes))
        ranges = tuple(Bound(Interval(0, size - 1)) for size in self.sizes)
        return IndexingMap(results, (self.domain,), ranges)

    @property
    def domain(self) -> Bound:
        """The numbers of the tiles."""
        return Bound(Interval(0, self.count - 1), "tile_id")

    @property
    def size(self) -> int:
        """The number of elements of the tile."""
        return prod(self.sizes)

    def scalar(self) -> TensorTile:
        """Return the tile of a tensor without dimensions."""
        return TensorTile(self.count, (), (), ())


@frozen
class IndexDigit:
    """A part of the index along a dimension of a tile: ``index // low % size``, all of it where nothing is reshaped.

    Args:
        dimension: The dimension of the result's tile.
        low: The weight of the digit.
        size: The number of its values.
    """

    dimension: int
    low: int
    size: int


@frozen
class TileRead:
    """The tile of an operand, and how the tile of the result is made of it.

    Args:
        tile: The tile of the operand.
        digits: The digits that the index in the operand's tile has, the slowest first.
        spread: The digits of the index in the result's tile, the slowest first.
    """

    tile: TensorTile
    digits: tuple[IndexDigit, ...]
    spread: tuple[IndexDigit, ...]


def power_of_two(number: int) -> int:
    """Return the least power of two that is no less than a number.

    >>> [power_of_two(number) for number in (1, 2, 3, 50)]
    [1, 2, 4, 64]
    """
    return 1 << (number - 1).bit_length()


def root_tile(shape: Sequence[int], sizes: Sequence[int]) -> TensorTile:
    """Return the tile of a result of some shape: its number counts the tiles row by row.

    >>> print(simplify(root_tile((5, 100), (2, 64)).map))  # doctest: +ELLIPSIS
    (tile_id)[s0, s1] -> ((tile_id / 2) * 2 + s0, (tile_id mod 2) * 64 + s1), domain: tile_id in [0, 5], ...
    """
    counts = [-(-size // width) for size, width in zip(shape, sizes, strict=True)]
    offsets: list[Expression] = []
    for number, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        offsets.append(dim(0) // prod(counts[number + 1 :]) % count * size)
    total = prod(counts)
    bare = IndexingMap(tuple(offsets), (Bound(Interval(0, total - 1), "tile_id"),))
    return TensorTile(total, simplify(bare).results, tuple(sizes), (1,) * len(sizes))


def read_through(tile: TensorTile, map_: IndexingMap) -> TileRead | None:
    """Return what a tile of a result reads of an operand; None where that is no tile.

    Args:
        tile: The tile of the result.
        map_: The map from the index of an element of the result to that of the operand.
    """
    if map_.is_undefined or map_.constraints or map_.ranges or map_.runtimes:
        return None
    composed = simplify(compose(tile.map, map_))
    if composed.is_known_empty:
        return None
    offsets: list[Expression] = []
    sizes, strides = [], []
    digits: list[IndexDigit] = []
    for result in composed.results:
        parts = _linear(result, tile.sizes)
        if parts is None:
            return None
        weights, offset = parts
        ordered = sorted(weights.items(), key=lambda item: -item[1])
        stride = 1
        for number, (digit, weight) in enumerate(reversed(ordered)):
            if not number:
                size, stride = 1, weight
            if weight != stride * size or weight < 1:
                return None
            size *= digit.size
        offsets.append(offset)
        sizes.append(prod(digit.size for digit in weights))
        strides.append(stride)
        digits += [digit for digit, _ in ordered]
    bare = simplify(IndexingMap(tuple(offsets), (tile.domain,)))
    spread = _all_digits(tile.sizes, digits)
    if spread is None:
        return None
    return TileRead(TensorTile(tile.count, bare.results, tuple(sizes), tuple(strides)), tuple(digits), spread)


def _linear(expression: Expression, sizes: Sequence[int]) -> tuple[dict[IndexDigit, int], Expression] | None:
    """Return an expression as a sum of digits with weights and of an offset; None where it is none."""
    if all(variable.kind is VariableKind.DIM for variable in variables_of(expression)):
        return {}, expression
    if isinstance(expression, Variable):
        size = sizes[expression.number]
        return {IndexDigit(expression.number, 1, size): 1}, ZERO
    assert isinstance(expression, Binary)
    left = _linear(expression.left, sizes)
    if left is None:
        return None
    weights, offset = left
    if expression.op == "+":
        right = _linear(expression.right, sizes)
        if right is None or weights.keys() & right[0].keys():
            return None
        return weights | right[0], offset + right[1]
    if not isinstance(expression.right, Constant):
        return None
    factor = expression.right.value
    if expression.op == "*":
        return {digit: weight * factor for digit, weight in weights.items()}, offset * factor
    if list(weights.values()) != [1] or offset != ZERO:
        return None
    (digit,) = weights
    if factor < 1 or digit.size % factor or factor & (factor - 1):
        return None
    match expression.op:
        case "/":
            return {IndexDigit(digit.dimension, digit.low * factor, digit.size // factor): 1}, ZERO
        case "mod":
            return {IndexDigit(digit.dimension, digit.low, factor): 1}, ZERO
    return None


def _all_digits(sizes: Sequence[int], used: Sequence[IndexDigit]) -> tuple[IndexDigit, ...] | None:
    """Return the digits of the index in a tile, with those between the used ones; None where used ones overlap."""
    spread: list[IndexDigit] = []
    for dimension, size in enumerate(sizes):
        low, found = 1, []
        for digit in sorted((item for item in used if item.dimension == dimension), key=lambda item: item.low):
            if digit.low < low:
                return None
            if digit.low > low:
                found.append(IndexDigit(dimension, low, digit.low // low))
            found.append(digit)
            low = digit.low * digit.size
        if low < size or not found:
            found.append(IndexDigit(dimension, low, size // low))
        spread += reversed(found)
    return tuple(spread)
