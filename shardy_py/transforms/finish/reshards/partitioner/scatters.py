"""Scatters of updates into an operand.

As in XLA's gather_scatter_handler.cc::PartitionScatter.
"""

from __future__ import annotations

from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.following import following_axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp


def is_scatter(op: PartitionedOp) -> bool:
    """Return whether an op makes its result of a tensor like it and of two others: the places and the updates."""
    rule = op.projection.rule
    return len(op.inputs) == 3 and op.inputs[0] == 0 and rule.operand_mappings[0] == rule.result_mappings[0]


def scatter_axes(op: PartitionedOp) -> list[Axes]:
    """Return the axes of every factor of a scatter.

    Devices scatter all updates into their parts of the operand where that takes less memory than parts of the updates
    into the whole one, as gather_scatter_handler.cc::ScatterPartitionMethodsOrderedByCost chooses.
    """
    found = following_axes(op)
    own = op.factors(0)
    scattered = [factor for factor in op.projection.rule.reduction_factors if found[factor] and factor not in own]
    if not scattered or not all(op.sizes):
        return found
    parts = following_axes(op, gathered=scattered)
    return parts if op.memory(op.operands, parts) < op.memory(op.operands, found) else found
