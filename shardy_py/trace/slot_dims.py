"""Dimensions of slots, and the axes on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding

SlotDim = tuple[int, int]
"""A slot and one of its dimensions."""


def slot_dim_of(slots: Sequence[int], mappings: Sequence[TensorMapping], position: int, factor: int) -> SlotDim | None:
    """Return the dimension of a tensor of a step that has a factor, or None."""
    if slots[position] < 0:
        return None
    for dimension, factors in enumerate(mappings[position]):
        if factor in factors:
            return slots[position], dimension
    return None


def slot_dims_with(slots: Sequence[int], mappings: Sequence[TensorMapping], factor: int) -> Iterator[SlotDim]:
    """Yield the dimensions of the tensors of a step that have a factor."""
    for position in range(len(slots)):
        slot_dim = slot_dim_of(slots, mappings, position, factor)
        if slot_dim is not None:
            yield slot_dim


def axes_of(sharding: TensorSharding | None, dimension: int) -> tuple[AxisRef, ...]:
    """Return the axes of a dimension; none without a sharding."""
    return () if sharding is None else sharding.of_dimension(dimension).axes


def overlapping(axis: AxisRef, axes: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the axes that share something with an axis."""
    return tuple(one for one in axes if one.overlaps(axis))
