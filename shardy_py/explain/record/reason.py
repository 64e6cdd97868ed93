"""Reasons in terms of a trace: slots, dimensions, steps and visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from shardy_py.explain.record.reasons import Code
from shardy_py.propagation.trace import Place
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding

Spot = tuple[int, int]
"""A slot and one of its dimensions."""


@frozen
class Reason:
    """One reason why an axis, or a part of it, is not on a dimension.

    Args:
        code: The kind of reason.
        axis: What is missing.
        spot: The dimension where the axis stopped; not the one in question where that is further away.
        distance: How many ops lie between the two.
        step: The step at which it stopped; None where the tensor itself is the reason.
        visit: The number of the visit that decided; -1 for none, where it is as of the end.
        place: The user priority, the level and the strategy of that visit, or of the last one.
        source: The losing candidate: a dimension that has the axis.
        factor: The factor along which the axis would have come; -1 for none.
        obstacle: The dimension that stood in the way, where there is one.
        by: The axes in the way.
        earlier: Why it did not come at earlier levels.
        detail: More about it.
        rivals: Of an axis that was lost, the dimensions that would have taken it in turn, were the obstacle not there.
    """

    code: Code
    axis: AxisRef
    spot: Spot
    distance: int = 0
    step: int | None = None
    visit: int = -1
    place: Place | None = None
    source: Spot | None = None
    factor: int = -1
    obstacle: Spot | None = None
    by: tuple[AxisRef, ...] = ()
    earlier: tuple[tuple[int, Code], ...] = ()
    detail: str = ""
    rivals: tuple[Spot, ...] = ()


def spot_of(
    slots: Sequence[int], mappings: Sequence[Sequence[Sequence[int]]], position: int, factor: int
) -> Spot | None:
    """Return the dimension of a tensor of a step that has a factor, or None."""
    if slots[position] < 0:
        return None
    for dimension, factors in enumerate(mappings[position]):
        if factor in factors:
            return slots[position], dimension
    return None


def spots_with(slots: Sequence[int], mappings: Sequence[TensorMapping], factor: int) -> Iterator[Spot]:
    """Yield the dimensions of the tensors of a step that have a factor."""
    for position in range(len(slots)):
        spot = spot_of(slots, mappings, position, factor)
        if spot is not None:
            yield spot


def axes_of(sharding: TensorSharding | None, dimension: int) -> tuple[AxisRef, ...]:
    """Return the axes of a dimension; none without a sharding."""
    return () if sharding is None else sharding.of_dimension(dimension).axes


def overlapping(axis: AxisRef, axes: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the axes that share something with an axis."""
    return tuple(one for one in axes if one.overlaps(axis))
