"""The axes along which XLA's SPMD partitioner computes an op of each kind, for estimates: mostly those of its results.

As in XLA's spmd_partitioner.cc::HandleSort and HandleConcatenate, and in gather_scatter_handler.cc::PartitionGather
and PartitionScatter.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioned_op import (
    PartitionedOp,
    all_axes,
    divide_otherwise,
    following_axes,
)
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes


def find_result_axes(
    projection: OpProjection,
    operands: int,
    *,
    is_result_open: bool = False,
    is_joined: bool = False,
    sizes: Sequence[int] = (),
) -> list[Axes]:
    """Return the axes of every factor.

    Where operands agree along a reduced factor, each device sums its part. All other axes follow from the results, so
    that operands are gathered along axes that results lack; a reduction of one operand computes on it as it is.

    Args:
        projection: The factor shardings; left as they are.
        operands: The number of operands.
        is_result_open: Whether propagation left the results alone, so that they follow the operands.
        is_joined: Whether the op joins or sorts its operands.
        sizes: The number of elements of every tensor.
    """
    op = PartitionedOp(projection, operands, is_result_open, sizes)
    if is_joined:
        return joined_axes(op)
    agreed = compatible_axes(projection) or elementwise_axes(op)
    if agreed:
        return agreed
    if is_scatter(op):
        return scatter_axes(op)
    return lookup_axes(op) if is_lookup(op) else following_axes(op)


def elementwise_axes(op: PartitionedOp) -> list[Axes] | None:
    """Return the axes of several operands of an elementwise op that are all divided alike, else None.

    Then the result is moved, and not each operand, as measured with jaxlib 0.10.2; a single operand is moved.
    """
    rule = op.projection.rule
    if len(op.inputs) < 2 or any(rule.mappings[number] != rule.mappings[-1] for number in op.inputs):
        return None
    factors = range(rule.num_factors)
    axes_of_operands = [[op.projection.axes(number, factor) or () for factor in factors] for number in op.inputs]
    return axes_of_operands[0] if all(axes == axes_of_operands[0] for axes in axes_of_operands) else None


def joined_axes(op: PartitionedOp) -> list[Axes]:
    """Return the axes of every factor of an op that joins or sorts its operands."""
    axes = compatible_axes(op.projection) or following_axes(op)
    _move_to_other_dimension(op, axes)
    return axes


def _move_to_other_dimension(op: PartitionedOp, axes: list[Axes]) -> None:
    """Put the axes of the dimension that is joined or sorted on the first dimension that they divide, in place.

    Operands and results go there and back by all-to-alls.
    """
    projection, rule, mesh = op.projection, op.projection.rule, op.projection.mesh
    result = len(projection.tensors) - 1
    of_operands = op.factors(0) - op.factors(result) - set(rule.reduction_factors)
    for joined in (*rule.need_replication_factors, *sorted(of_operands)):
        holder = 0 if joined in of_operands else result
        others = all_axes([item for factor, item in enumerate(axes) if factor != joined])
        freed = truncate_without_overlap(projection.axes(holder, joined) or (), others)
        if not freed:
            continue
        if joined in of_operands:
            axes[joined] = ()
        chosen = _other_dimension(op, joined, axes, axes_size(freed, mesh))
        if chosen is not None:
            axes[chosen] = (*axes[chosen], *freed)


def _other_dimension(op: PartitionedOp, joined: int, axes: list[Axes], parts: int) -> int | None:
    """Return the factor of the first dimension of the result that can be divided into more parts."""
    rule, mesh = op.projection.rule, op.projection.mesh
    others = (dim[0] for dim in rule.mappings[-1] if len(dim) == 1)
    free = (factor for factor in others if factor != joined and factor not in rule.need_replication_factors)
    return next(
        (factor for factor in free if rule.factor_sizes[factor] % (axes_size(axes[factor], mesh) * parts) == 0), None
    )


_MASKED = 1.5
"""Memory of a sum of results that are looked up in parts of a table, by that of the results; measured: 1.25 to 1.95."""


def is_lookup(op: PartitionedOp) -> bool:
    """Return whether the second of two operands says places in the first one: that has factors which no other has."""
    return op.inputs[:1] == [0] and len(op.inputs) == 2 and bool(_sought(op) - op.factors(-1))


def lookup_axes(op: PartitionedOp) -> list[Axes]:
    """Return the axes of every factor of a look-up.

    Where the table is divided along what is looked up, devices look up in their parts and sum the results, or they
    gather the table first: what takes less memory.
    """
    copied = _copied(op)
    summed = following_axes(op, unchanged=copied)
    sought = _sought(op)
    looked_up = [factor for factor in op.projection.rule.reduction_factors if summed[factor] and factor in sought]
    if not looked_up or not all(op.sizes) or len(op.sizes) <= op.operand_count:
        return summed
    divide_otherwise(op, summed, allow_fewer=True)
    gathered = following_axes(op, gathered=looked_up, unchanged=copied)
    return gathered if _is_smaller(op, gathered, summed) else summed


def _sought(op: PartitionedOp) -> set[int]:
    """Return the factors of the table that the places lack."""
    table, places = op.inputs
    return op.factors(table) - op.factors(places)


def _copied(op: PartitionedOp) -> Sequence[int]:
    """Return the factors of a table that what is looked up there has whole, and along which the table stays divided.

    As in gather_scatter_handler.cc::PartitionGatherOperandPassthroughDimensions.
    """
    return sorted(_sought(op) & op.factors(-1))


def _is_smaller(op: PartitionedOp, gathered: Sequence[Axes], summed: Sequence[Axes]) -> bool:
    """Return whether a whole table and what is found there take less memory than sums of results, with their indices.

    As in gather_scatter_handler.cc::GatherPartitionMethodsOrderedByCost; results and indices are masked.
    """
    result = op.operand_count
    return op.memory((0, result), gathered) < _MASKED * op.memory(range(1, result + 1), summed)


def is_scatter(op: PartitionedOp) -> bool:
    """Return whether an op makes its result of a tensor like it and of two others: the places and the updates."""
    rule = op.projection.rule
    return len(op.inputs) == 3 and op.inputs[0] == 0 and rule.operand_mappings[0] == rule.result_mappings[0]


def scatter_axes(op: PartitionedOp) -> list[Axes]:
    """Return the axes of every factor of a scatter.

    Devices scatter all updates into their parts of the operand where that takes less memory than parts of the updates
    into the whole one, as gather_scatter_handler.cc::ScatterPartitionMethodsOrderedByCost chooses.
    """
    axes = following_axes(op)
    operand_factors = op.factors(0)
    scattered = [
        factor for factor in op.projection.rule.reduction_factors if axes[factor] and factor not in operand_factors
    ]
    if not scattered or not all(op.sizes):
        return axes
    parts = following_axes(op, gathered=scattered)
    return parts if op.memory(op.operands, parts) < op.memory(op.operands, axes) else axes
