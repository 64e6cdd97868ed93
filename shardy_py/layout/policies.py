"""Policies: which layout an array gets where the program does not say."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar, Protocol

from attrs import evolve, field

from shardy_py.layout.shape import AnyShape, Shape, map_arrays
from shardy_py.layout.values import Layout, Tile, default_layout, invalid
from shardy_py.support.element_types import packed_bits
from shardy_py.values import frozen


class LayoutPolicy(Protocol):
    """Chooses the layout of an array."""

    @property
    def name(self) -> str:
        """Its name in options."""

    def choose(self, shape: Shape) -> Layout:
        """Return the layout of an array; the memory space is that of the given shape."""


@frozen
class RowMajor:
    """The last dimension varies fastest, nothing is tiled; elements smaller than a byte are packed."""

    name: ClassVar[str] = "row-major"

    def choose(self, shape: Shape) -> Layout:
        """Return the layout of an array; the memory space is that of the given shape."""
        return evolve(
            default_layout(shape.rank),
            element_bits=_element_bits(shape.element_type),
            memory_space=shape.layout.memory_space,
        )


@frozen
class Tpu:
    """Layouts of the TPU compiler for the arguments of a program: those that take the least memory.

    A register holds ``sublanes`` rows of ``lanes`` words. Elements smaller than a word are packed along the rows, so a
    tile has at least as many rows as elements fit into a word. An array with fewer rows than a register gets a lower
    tile, down to the next power of two. Of 4-bit and 8-bit elements, a tile as high as a register full of packed rows
    is taken where the rows fill such tiles exactly.

    Which dimensions become columns and rows is what pads least; among equals the last dimension becomes the columns,
    then the last one left the rows. The others keep their order.

    Args:
        name: What options call it.
        lanes: The columns of a register.
        sublanes: The rows of a register.
        word_bits: The bits of one place in a register.
    """

    name: str = "tpu-v5e"
    lanes: int = field(default=128, kw_only=True)
    sublanes: int = field(default=8, kw_only=True)
    word_bits: int = field(default=32, kw_only=True)

    def choose(self, shape: Shape) -> Layout:
        """Return the layout of an array; the memory space is that of the given shape.

        Raises:
            VerificationError: a dimension is unbounded.
        """
        sizes = shape.static_bounds
        layout = RowMajor().choose(shape)
        # An array without elements has nothing to tile.
        if 0 in sizes:
            return layout
        packing = max(1, self.word_bits // packed_bits(shape.element_type))
        if not sizes:
            return evolve(layout, tiles=(Tile((self.lanes * packing,)),))
        packed = (Tile((packing, 1)),) if packing > 1 else ()
        if len(sizes) == 1:
            tile = Tile((self._vector_tile(sizes[0], packing),))
            inner = (Tile((self.lanes,)), *packed) if packed else ()
            return evolve(layout, tiles=(tile, *inner))
        columns, rows = min(_pairs(len(sizes)), key=lambda pair: self._padded(sizes, pair, packing))
        others = [number for number in layout.minor_to_major if number not in (columns, rows)]
        tile = Tile((self._tile_rows(sizes[rows], packing), self.lanes))
        return evolve(layout, minor_to_major=(columns, rows, *others), tiles=(tile, *packed))

    def _vector_tile(self, size: int, packing: int) -> int:
        """Return the tile of an array of one dimension: at most a register of words, at least one packed row."""
        return max(self.lanes * packing, min(self.lanes * self.sublanes, _power_of_two(size)))

    def _tile_rows(self, rows: int, packing: int) -> int:
        high = self.sublanes * packing
        # The compiler's large tiles are for elements below 16 bits only.
        if packing >= 4 and rows % high == 0:
            return high
        return max(packing, min(self.sublanes, _power_of_two(rows)))

    def _padded(self, sizes: tuple[int, ...], pair: tuple[int, int], packing: int) -> int:
        """Return the number of elements in memory where two dimensions become columns and rows."""
        columns, rows = pair
        others = prod(sizes) // (sizes[columns] * sizes[rows])
        height = self._tile_rows(sizes[rows], packing)
        return others * _round_up(sizes[columns], self.lanes) * _round_up(sizes[rows], height)


TPU_V5E = Tpu()
ROW_MAJOR = RowMajor()
POLICIES: dict[str, LayoutPolicy] = {policy.name: policy for policy in (TPU_V5E, ROW_MAJOR)}
"""The policies by name."""


def find_policy(name: str) -> LayoutPolicy:
    """Return the policy of a name.

    Raises:
        VerificationError: there is none.
    """
    if name not in POLICIES:
        raise invalid("unknown-layout-policy", f"there is no layout policy {name!r}", hint=f"use {', '.join(POLICIES)}")
    return POLICIES[name]


def apply_policy(policy: LayoutPolicy, shape: AnyShape) -> AnyShape:
    """Return the shape with the layouts a policy chooses for its arrays.

    >>> from shardy_py.layout.parse import parse_shape
    >>> str(apply_policy(TPU_V5E, parse_shape("(f32[5,1], bf16[7], token[])")))
    '(f32[5,1]{0,1:T(1,128)}, bf16[7]{0:T(256)(128)(2,1)}, token[])'

    Raises:
        VerificationError: the policy needs a size that is unbounded.
    """
    return map_arrays(shape, lambda array: array.with_layout(policy.choose(array)))


def _pairs(rank: int) -> Iterator[tuple[int, int]]:
    """Iterate over pairs of dimensions, the one preferred among equals first."""
    for columns in reversed(range(rank)):
        for rows in reversed(range(rank)):
            if rows != columns:
                yield columns, rows


def _element_bits(element_type: str) -> int:
    bits = packed_bits(element_type)
    return bits if bits < 8 else 0


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _round_up(size: int, step: int) -> int:
    return -(-size // step) * step
