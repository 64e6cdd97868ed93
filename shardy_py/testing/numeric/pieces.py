"""Pieces of dimensions that can be split, and the shards that splitting them makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from shardy_py.sharding.rule import DimMapping, OpShardingRule
from shardy_py.values import frozen

Array = Any
Sizes = tuple[int, ...]
Split = tuple[int, ...]
"""Units per device; a unit is the largest common part of all pieces that are split together."""


@frozen
class Piece:
    """One factor's part of one dimension, which is ``outer * size * inner`` elements long, major first.

    Args:
        tensor: The number of the tensor: operands first, then results.
        dim: The dimension.
        outer: The product of the sizes of the pieces that are more major.
        size: How many parts it can be split into at most.
        inner: The product of the sizes of the pieces that are more minor.
        factor: The factor that claims it, or None.
    """

    tensor: int
    dim: int
    outer: int
    size: int
    inner: int
    factor: int | None = None

    def positions(self, split: Split, part: int) -> Array:
        """Return the positions along the dimension that one of several devices holds."""
        units = sum(split)
        every = np.arange(self.outer * self.size * self.inner).reshape(self.outer, units, -1, self.inner)
        start = sum(split[:part])
        return every[:, start : start + split[part]].ravel()

    def place(self, num_operands: int) -> str:
        """Return the dimension in words."""
        is_operand = self.tensor < num_operands
        number = self.tensor if is_operand else self.tensor - num_operands
        name = f"{'operand' if is_operand else 'result'} {number} dim {self.dim}"
        if self.outer == self.inner == 1:
            return name
        return f"{name} ({self.outer}x[{self.size}]x{self.inner})".replace("(1x", "(").replace("x1)", ")")


def pieces_of(rule: OpShardingRule, shapes: Sequence[Sizes]) -> list[Piece]:
    """Return the pieces of all dimensions, as the factors of a rule divide them.

    A lone factor has its dimension whole, even if the sizes differ, as they do for a slice. A dimension of several
    factors whose sizes do not make up its own is one piece that no factor claims.
    """
    return [
        piece
        for tensor, (mapping, shape) in enumerate(zip(rule.mappings, shapes, strict=True))
        for dim, (factors, size) in enumerate(zip(mapping, shape, strict=True))
        for piece in _dim_pieces(rule, tensor, dim, factors, size)
    ]


def _dim_pieces(rule: OpShardingRule, tensor: int, dim: int, factors: DimMapping, size: int) -> list[Piece]:
    if len(factors) == 1:
        return [Piece(tensor, dim, 1, size, 1, factors[0])]
    sizes = [rule.factor_sizes[factor] for factor in factors]
    if prod(sizes) != size:
        return [Piece(tensor, dim, 1, size, 1)]
    return [
        Piece(tensor, dim, prod(sizes[:index]), sizes[index], prod(sizes[index + 1 :]), factor)
        for index, factor in enumerate(factors)
    ]


@frozen(eq=False)
class TensorShard:
    """Part of a tensor on one device.

    Args:
        positions: For each dimension, the positions in the whole tensor of the elements held.
        whole: The sizes of the whole tensor.
    """

    positions: tuple[Array, ...]
    whole: Sizes

    @property
    def shape(self) -> Sizes:
        """The sizes of the shard."""
        return tuple(len(item) for item in self.positions)

    def offset(self, dim: int) -> int:
        """Return the position of the first element held along a dimension."""
        return int(self.positions[dim][0]) if len(self.positions[dim]) else 0

    def of(self, array: Array) -> Array:
        """Cut the shard out of the whole tensor."""
        return array[np.ix_(*self.positions)] if self.positions else array


@frozen(eq=False)
class Local:
    """Shards on the device that runs a function, for functions with a parameter named ``local``.

    Args:
        operands: The shards of the operands, which the function gets as arrays, too.
        results: The shards of the results that it has to return. In a reduction they are whole.
        part: The number of the device along the factor that is sharded.
        parts: The number of devices; 1 where nothing is sharded.
    """

    operands: tuple[TensorShard, ...]
    results: tuple[TensorShard, ...]
    part: int = 0
    parts: int = 1


def make_local(
    shapes: Sequence[Sizes], num_operands: int, pieces: Iterable[Piece] = (), split: Split = (1,), part: int = 0
) -> Local:
    """Return what a device holds when some pieces, at most one per tensor, are split."""
    positions = [[np.arange(size) for size in shape] for shape in shapes]
    for piece in pieces:
        positions[piece.tensor][piece.dim] = piece.positions(split, part)
    shards = tuple(TensorShard(tuple(held), tuple(shape)) for held, shape in zip(positions, shapes, strict=True))
    return Local(shards[:num_operands], shards[num_operands:], part, len(split))
