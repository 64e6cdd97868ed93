"""Concatenations and sorts: what is joined or sorted moves to another dimension, and back.

As in XLA's spmd_partitioner.cc::HandleSort and HandleConcatenate.
"""

from __future__ import annotations

from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.following import following_axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp, all_axes
from shardy_py.transforms.finish.reshards.projection import compatible_axes


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
    free = (one for one in others if one != joined and one not in rule.need_replication_factors)
    return next((one for one in free if rule.factor_sizes[one] % (axes_size(axes[one], mesh) * parts) == 0), None)
