"""Elements and bytes of an array in memory, exactly and as XLA counts, and the shard of an array on one device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from attrs import evolve

from shardy_py.layout.index import expanded_sizes, tail_padded
from shardy_py.layout.shape import AnyShape, Bounded, Shape, Size, arrays
from shardy_py.layout.tiling import combined
from shardy_py.layout.values import invalid
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.element_types import packed_bits, storage_bits
from shardy_py.values import frozen


@frozen
class Footprint:
    """The memory of an array.

    Args:
        elements: The elements it has.
        logical_bytes: The bytes they take side by side, packed.
        padded_elements: The elements it takes, with padding.
        padded_bytes: The bytes it takes, with padding.
        array_size: The bytes by XLA's own count; see `array_size`.
    """

    elements: int
    logical_bytes: int
    padded_elements: int
    padded_bytes: int
    array_size: int

    @property
    def wasted_bytes(self) -> int:
        """The bytes that hold no data."""
        return self.padded_bytes - self.logical_bytes

    @property
    def waste(self) -> float:
        """The share of the bytes that hold no data; 0 where there are none."""
        return self.wasted_bytes / self.padded_bytes if self.padded_bytes else 0.0


def element_bits(shape: Shape) -> int:
    """Return the bits of one element: those of the layout, or whole bytes."""
    return shape.layout.element_bits or storage_bits(shape.element_type)


def element_count(shape: Shape) -> int:
    """Return the number of elements; a dynamic size counts by its bound.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return prod(shape.static_bounds)


def logical_bytes(shape: AnyShape) -> int:
    """Return the bytes of the elements side by side, packed, whatever the layout.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return sum(-(-element_count(item) * packed_bits(item.element_type) // 8) for item in arrays(shape))


def padded_elements(shape: Shape) -> int:
    """Return the exact number of elements in memory: every tile pads, then the tail.

    >>> from shardy_py.layout.parse import parse_array
    >>> padded_elements(parse_array("f32[4,4]{1,0:T(2,2)(3,1,1,1)}"))
    24

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return tail_padded(shape, prod(expanded_sizes(shape)))


def padded_bytes(shape: AnyShape) -> int:
    """Return the exact bytes in memory; of a tuple those of its arrays, for tokens and opaque values nothing.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return sum(-(-padded_elements(item) * element_bits(item) // 8) for item in arrays(shape))


def array_size(shape: AnyShape) -> int:
    """Return the bytes as XLA's ``ArraySize`` counts them: only the first tile pads, then the tail.

    Of a dimension that is split, XLA counts the largest piece: this is what one memory has to hold.

    >>> from shardy_py.layout.parse import parse_array
    >>> array_size(parse_array("f32[4,4]{1,0:T(2,2)(3,1,1,1)}"))
    64

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return sum(-(-_xla_elements(item) * element_bits(item) // 8) for item in arrays(shape))


def footprint(shape: AnyShape) -> Footprint:
    """Return the footprint of a shape in memory.

    Raises:
        VerificationError: a dimension is unbounded.
    """
    return Footprint(
        sum(map(element_count, arrays(shape))),
        logical_bytes(shape),
        sum(map(padded_elements, arrays(shape))),
        padded_bytes(shape),
        array_size(shape),
    )


def _xla_elements(shape: Shape) -> int:
    sizes = list(shape.physical_sizes)
    if not shape.layout.tiles:
        return tail_padded(shape, prod(sizes))
    for split in shape.layout.splits:
        edges = [0, *split.indices, sizes[split.dimension]]
        sizes[split.dimension] = max(after - before for before, after in pairwise(edges))
    merged, tile = combined(sizes, shape.layout.tiles[0])
    outer = len(merged) - len(tile)
    rounded = (-(-size // step) * step for size, step in zip(merged[outer:], tile, strict=True))
    return tail_padded(shape, prod(merged[:outer]) * prod(rounded))


def shard_shape(shape: Shape, counts: Sequence[int]) -> Shape:
    """Return the shape of the largest shard: sizes divided rounding up, the layout kept.

    Splits are dropped, their indices mean the whole array.

    Args:
        shape: The whole array.
        counts: Into how many parts each dimension is divided.

    >>> from shardy_py.layout.parse import parse_array
    >>> str(shard_shape(parse_array("f32[1000,300]{0,1:T(8,128)}"), (2, 4)))
    'f32[500,75]{0,1:T(8,128)}'

    Raises:
        VerificationError: there is not one positive count per dimension.
    """
    if len(counts) != shape.rank:
        raise invalid("rank-mismatch", f"{len(counts)} counts for the {shape.rank} dimensions of {shape}")
    if min(counts, default=1) < 1:
        raise invalid("invalid-shard-count", f"a dimension cannot be divided into {min(counts)} parts")
    sizes = tuple(_divided(size, count) for size, count in zip(shape.sizes, counts, strict=True))
    return Shape(shape.element_type, sizes, evolve(shape.layout, splits=()))


def shard_counts(sharding: TensorSharding, mesh: Mesh) -> tuple[int, ...]:
    """Return into how many parts a sharding divides each dimension."""
    return tuple(axes_size(dim.axes, mesh) for dim in sharding.dim_shardings)


def _divided(size: Size, count: int) -> Size:
    if size is None:
        return None
    if isinstance(size, Bounded):
        return Bounded(-(-size.bound // count))
    return -(-size // count)
