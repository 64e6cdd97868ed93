"""Slots of a trace: the dimensions that have a factor, their axes, and the refusals of axes by slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from shardy_py.propagation.trace import SchedulePosition
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason
from shardy_py.values import frozen

SlotDim = tuple[int, int]
"""A slot and one of its dimensions."""


@frozen(eq=False, slots=False)
class RuleIndex:
    """A rule with the dimensions of its factors.

    Every dimension asks for its factors, so a search through the dimensions would take their number squared.

    Args:
        rule: The rule.
    """

    rule: OpShardingRule

    @cached_property
    def mappings(self) -> tuple[TensorMapping, ...]:
        """The mappings of operands, then of results."""
        return self.rule.mappings

    @cached_property
    def dimensions(self) -> tuple[Mapping[int, int], ...]:
        """For each tensor, factor to the first dimension that has it."""
        return tuple(
            {factor: dimension for dimension, factors in reversed(list(enumerate(mapping))) for factor in factors}
            for mapping in self.mappings
        )

    @cached_property
    def factors(self) -> tuple[frozenset[int], ...]:
        """The factors of each tensor."""
        return tuple(map(frozenset, self.dimensions))

    @cached_property
    def positions(self) -> Mapping[int, Sequence[int]]:
        """Factor to the positions of the tensors that have it."""
        positions: dict[int, list[int]] = {}
        for position, dimensions in enumerate(self.dimensions):
            for factor in dimensions:
                positions.setdefault(factor, []).append(position)
        return positions

    def slot_dim(self, slots: Sequence[int], position: int, factor: int) -> SlotDim | None:
        """Return the dimension of a tensor of a step that has a factor, or None."""
        dimension = self.dimensions[position].get(factor)
        return None if slots[position] < 0 or dimension is None else (slots[position], dimension)

    def slot_dims(self, slots: Sequence[int], factor: int) -> Iterator[SlotDim]:
        """Yield the dimensions of the tensors of a step that have a factor."""
        for position in self.positions.get(factor, ()):
            slot_dim = self.slot_dim(slots, position, factor)
            if slot_dim is not None:
                yield slot_dim


def axes_of(sharding: TensorSharding | None, dimension: int) -> tuple[AxisRef, ...]:
    """Return the axes of a dimension; none without a sharding."""
    return () if sharding is None else sharding.of_dimension(dimension).axes


def overlapping(axis: AxisRef, axes: Sequence[AxisRef]) -> tuple[AxisRef, ...]:
    """Return the axes that share something with an axis."""
    return tuple(other for other in axes if other.overlaps(axis))


@frozen
class SlotRefusal:
    """A refusal of an axis, or of a part of it, at a dimension of a slot, with its reason.

    Args:
        reason: The reason.
        axis: The axis that is missing.
        slot_dim: The dimension where the axis stopped; not the one in question where that is further away.
        distance: The number of ops between the two.
        step: The step at which it stopped; None where the tensor itself is the reason.
        visit: The number of the visit that decided; -1 for none, where the refusal is as of the end.
        place: The user priority, the level and the strategy of that visit, or of the last one.
        source: The losing candidate: a dimension that has the axis.
        factor: The factor along which the axis would have come; -1 for none.
        obstacle: The dimension that stood in the way, where there is one.
        by: The axes in the way.
        earlier: The reasons at earlier levels, each with its level.
        detail: More about it.
        rivals: Of an axis that was lost, the dimensions that would have taken it in turn, were the obstacle not there.
    """

    reason: Reason
    axis: AxisRef
    slot_dim: SlotDim
    distance: int = 0
    step: int | None = None
    visit: int = -1
    place: SchedulePosition | None = None
    source: SlotDim | None = None
    factor: int = -1
    obstacle: SlotDim | None = None
    by: tuple[AxisRef, ...] = ()
    earlier: tuple[tuple[int, Reason], ...] = ()
    detail: str = ""
    rivals: tuple[SlotDim, ...] = ()
