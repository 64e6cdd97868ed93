"""Products of two operands: what is summed where they disagree, and how the results are divided else.

As in XLA's dot_handler.cc::PartitionDot.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axes import AxisRef, axes_size, make_axis
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp, all_axes


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
    found = free[holder]
    if not found or not _is_grouped(op, axes) or op.is_divided_along(other, found):
        return ()
    count, result = axes_size(found, mesh), len(op.sizes) - 1
    gathered = op.sizes[holder] * (count - 1) / (op.parts(holder, axes) * count)
    reduced = 2 * op.sizes[result] * (count - 1) / (op.parts(result, axes) * count)
    return found if reduced <= gathered else ()


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
    own = next((found for number in op.operands if (found := op.free_axes(number, factor, used))), ())
    if own and not any_overlap(own, wanted):
        return own
    free = [AxisRef(axis.name) for axis in mesh.axes if not any_overlap((AxisRef(axis.name),), used)]
    fitting = next((axis for axis in free if axis.size(mesh) % size == 0), None)
    if fitting is not None:
        return (make_axis(fitting.name, 1, size, mesh),)
    return next(((axis,) for axis in free if size % axis.size(mesh) == 0), ()) if allow_fewer else ()
