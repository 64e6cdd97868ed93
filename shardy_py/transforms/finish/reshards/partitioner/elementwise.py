"""Elementwise ops of operands that are divided alike."""

from __future__ import annotations

from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp


def elementwise_axes(op: PartitionedOp) -> list[Axes] | None:
    """Return the axes of several operands of an elementwise op that are all divided alike, else None.

    Then the result is moved, and not each operand, as measured with jaxlib 0.10.2; a single operand is moved.
    """
    rule = op.projection.rule
    if len(op.inputs) < 2 or any(rule.mappings[number] != rule.mappings[-1] for number in op.inputs):
        return None
    factors = range(rule.num_factors)
    found = [[op.projection.axes(number, factor) or () for factor in factors] for number in op.inputs]
    return found[0] if all(axes == found[0] for axes in found) else None
