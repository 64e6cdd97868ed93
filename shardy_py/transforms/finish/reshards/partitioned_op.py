"""One op as XLA's SPMD partitioner computes it: the factor shardings of its tensors, for products and for other ops.

As in XLA's dot_handler.cc::PartitionDot, and in spmd_partitioner.cc::HandleReduce, HandleElementwise, HandleTranspose,
HandleConcatenate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod

from shardy_py.sharding.axes import AxisRef, axes_size, make_axis
from shardy_py.sharding.axis_lists import any_overlap, greatest_common_prefix, truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind
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
        prefix: Axes | None = None
        for number in self.operands:
            axes = self.projection.axes(number, factor)
            if axes is not None:
                prefix = axes if prefix is None else greatest_common_prefix(prefix, axes)
        return prefix or ()

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


def is_product(op: PartitionedOp) -> bool:
    """Return whether an op computes on two operands, of known sizes, on the parts that devices have."""
    return len(op.inputs) == 2 and bool(op.sizes) and all(op.sizes) and op.is_local


def is_held_elsewhere(op: PartitionedOp, factor: int, axes: Axes) -> bool:
    """Return whether an operand of a product that lacks a factor is divided along axes of it."""
    others = [number for number in op.inputs if factor not in op.projection.tensors[number].factors]
    return len(op.inputs) == 2 and any(op.is_divided_along(number, axes) for number in others)


def sum_where_operands_disagree(op: PartitionedOp, axes: list[Axes]) -> None:
    """Divide the reduced factors of a product that have no axes yet, in place, where that sends less."""
    for factor in op.projection.rule.reduction_factors:
        if not axes[factor]:
            axes[factor] = _summed_axes(op, factor, axes)


def _summed_axes(op: PartitionedOp, factor: int, axes: Sequence[Axes]) -> Axes:
    """Return the axes along which devices sum parts of a product whose operands disagree there; none to gather them.

    As in dot_handler.cc::PartitionDotGroupOnContractingImpl: operands divided alike follow the larger one. Where only
    one is divided, and both results and operands are divided elsewhere, what sends less is done.
    """
    first, second = sorted(op.inputs, key=lambda number: -op.sizes[number])
    mesh, used = op.projection.mesh, all_axes(axes)
    free = {number: op.free_axes(number, factor, used) for number in (first, second)}
    if free[first] and free[second]:
        return free[first] if axes_size(free[first], mesh) == axes_size(free[second], mesh) else ()
    holder, other = (first, second) if free[first] else (second, first)
    summed = free[holder]
    if not summed or not _is_grouped(op, axes) or op.is_divided_along(other, summed):
        return ()
    count, result = axes_size(summed, mesh), len(op.sizes) - 1
    gathered = op.sizes[holder] * (count - 1) / (op.parts(holder, axes) * count)
    reduced = 2 * op.sizes[result] * (count - 1) / (op.parts(result, axes) * count)
    return summed if reduced <= gathered else ()


def _is_grouped(op: PartitionedOp, axes: Sequence[Axes]) -> bool:
    """Return whether some operand has the axes of the op along a factor already."""
    return any(
        axes[factor] and op.projection.axes(number, factor) == axes[factor]
        for number in op.inputs
        for factor in range(len(axes))
    )


def divide_otherwise(op: PartitionedOp, axes: list[Axes], *, allow_fewer: bool = False) -> None:
    """Divide factors of results whose axes are summed along as often along axes that are free, in place.

    The result is permuted to where it belongs, as in dot_handler.cc::PartitionDotGroupOnContractingImpl and
    gather_scatter_handler.cc::PartitionGatherTrivialSlicedOperandDimensions.

    Args:
        op: The op.
        axes: The axes of every factor.
        allow_fewer: Whether factors may be divided less often than in the results.
    """
    for factor in range(len(axes)):
        wanted = op.first_axes(op.results, factor)
        if wanted and not axes[factor]:
            axes[factor] = _other_axes(op, factor, wanted, all_axes(axes), allow_fewer=allow_fewer)


def _other_axes(op: PartitionedOp, factor: int, wanted: Axes, used: Axes, *, allow_fewer: bool) -> Axes:
    """Return free axes for a factor of the results; those that an operand is divided along stay as they are."""
    mesh = op.projection.mesh
    size = axes_size(wanted, mesh)
    present = next((free_axes for number in op.operands if (free_axes := op.free_axes(number, factor, used))), ())
    if present and not any_overlap(present, wanted):
        return present
    free = [AxisRef(axis.name) for axis in mesh.axes if not any_overlap((AxisRef(axis.name),), used)]
    fitting = next((axis for axis in free if axis.size(mesh) % size == 0), None)
    if fitting is not None:
        return (make_axis(fitting.name, 1, size, mesh),)
    return next(((axis,) for axis in free if size % axis.size(mesh) == 0), ()) if allow_fewer else ()


def following_axes(op: PartitionedOp, *, gathered: Sequence[int] = (), unchanged: Sequence[int] = ()) -> list[Axes]:
    """Return the axes of every factor.

    Args:
        op: The op.
        gathered: The reduced factors along which operands are gathered instead of summed.
        unchanged: The factors along which the first operand stays as it is; they come before all others.
    """
    rule = op.projection.rule
    axes: list[Axes] = [()] * rule.num_factors
    for factor in rule.reduction_factors:
        if factor not in gathered:
            axes[factor] = truncate_without_overlap(op.common_prefix(factor), all_axes(axes))
    leading = _leading(op)
    for factor in (*unchanged, *(other for other in range(rule.num_factors) if other not in unchanged)):
        if rule.kind(factor) in (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION):
            continue
        present = op.projection.axes(0, factor) if factor in unchanged else ()
        wanted = present or _wanted_axes(op, leading, factor)
        axes[factor] = truncate_without_overlap(wanted, all_axes(axes))
        if axes[factor] != wanted and is_held_elsewhere(op, factor, axes[factor]):
            # Rows that are divided less than in the result are gathered where the other operand has their axes.
            axes[factor] = ()
    if is_product(op) and not gathered:
        sum_where_operands_disagree(op, axes)
        if not op.is_result_open:
            divide_otherwise(op, axes)
    return axes


def _leading(op: PartitionedOp) -> Sequence[int]:
    """Return the tensors that an op is divided like."""
    if op.is_result_open:
        # What is made of several operands is divided as all of them are.
        return op.inputs if op.is_local else op.inputs[:1]
    # A reduction keeps its only operand, and what comes out is resharded.
    return op.inputs if op.projection.rule.reduction_factors and len(op.inputs) == 1 else op.results


def _wanted_axes(op: PartitionedOp, leading: Sequence[int], factor: int) -> Axes:
    """Return the axes of a factor in the tensors that an op is divided like, or in all operands along a batch."""
    wanted = op.first_axes(leading, factor)
    if not wanted and op.is_result_open:
        wanted = next((axes for number in leading if (axes := op.projection.axes(number, factor))), ())
    if not wanted and len(op.inputs) > 1 and op.projection.rule.is_batching(factor):
        wanted = op.common_prefix(factor)
    return wanted
