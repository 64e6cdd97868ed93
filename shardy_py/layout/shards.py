"""The shard of an array on one device."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.layout.shape import Bounded, Shape, Size
from shardy_py.layout.values import invalid
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


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
