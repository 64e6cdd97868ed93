"""Dimensions of slots, and the axes on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import TensorSharding
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
    return tuple(one for one in axes if one.overlaps(axis))
