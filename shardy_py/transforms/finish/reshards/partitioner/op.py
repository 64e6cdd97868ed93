"""One op as the partitioner sees it: the factor shardings of its tensors, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod

from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import any_overlap, greatest_common_prefix
from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.common_axes import non_scalar_tensors
from shardy_py.transforms.finish.reshards.projection import OpProjection
from shardy_py.values import define


@define(frozen=True, slots=False, eq=False)
class PartitionedOp:
    """An op that the partitioner is to compute; tensors have numbers, those of operands first.

    Attributes:
        projection: The factor shardings; left as they are.
        operand_count: The number of operands.
        is_result_open: Whether propagation left the results alone, so that they follow the operands.
        sizes: The number of elements of every tensor; 0 where it is unknown.
    """

    projection: OpProjection
    operand_count: int
    is_result_open: bool
    sizes: Sequence[int]

    @property
    def operands(self) -> range:
        """The operands."""
        return range(self.operand_count)

    @property
    def results(self) -> range:
        """The results."""
        return range(self.operand_count, len(self.projection.tensors))

    @cached_property
    def inputs(self) -> list[int]:
        """The operands that have a dimension."""
        return [number for number in non_scalar_tensors(self.projection.rule) if number < self.operand_count]

    @property
    def is_local(self) -> bool:
        """True if no factor needs data of other devices: none is replicated or permuted."""
        return not (self.projection.rule.need_replication_factors or self.projection.rule.permutation_factors)

    def factors(self, number: int) -> set[int]:
        """Return the factors of the dimensions of a tensor."""
        return {factor for dim in self.projection.rule.mappings[number] for factor in dim}

    def common_prefix(self, factor: int) -> Axes:
        """Return the axes with which the axes of all operands that have a factor start."""
        found: Axes | None = None
        for number in self.operands:
            axes = self.projection.axes(number, factor)
            if axes is not None:
                found = axes if found is None else greatest_common_prefix(found, axes)
        return found or ()

    def first_axes(self, tensors: Iterable[int], factor: int) -> Axes:
        """Return the axes of the first of some tensors that has a factor."""
        return next((axes for number in tensors if (axes := self.projection.axes(number, factor)) is not None), ())

    def free_axes(self, number: int, factor: int, used: Axes) -> Axes:
        """Return the axes of a tensor along a factor; none where another factor takes some of them."""
        axes = self.projection.axes(number, factor) or ()
        return () if any_overlap(axes, used) else axes

    def is_divided_along(self, number: int, axes: Axes) -> bool:
        """Return whether a tensor is divided along some of the axes."""
        return any(any_overlap(entry.axes, axes) for entry in self.projection.tensors[number].factors.values())

    def parts(self, number: int, axes: Sequence[Axes]) -> int:
        """Return the number of parts into which the axes of the op's factors divide a tensor."""
        return prod(axes_size(axes[factor], self.projection.mesh) for factor in self.projection.tensors[number].factors)

    def memory(self, tensors: Iterable[int], axes: Sequence[Axes]) -> float:
        """Return the number of elements that one device has of some tensors."""
        return sum(self.sizes[number] / self.parts(number, axes) for number in tensors)


def all_axes(axes: Sequence[Axes]) -> Axes:
    """Return the axes of all factors."""
    return tuple(axis for item in axes for axis in item)
