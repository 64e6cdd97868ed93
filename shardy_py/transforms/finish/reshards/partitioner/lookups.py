"""Look-ups of places in a table: gathers.

As in XLA's gather_scatter_handler.cc::PartitionGather.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.following import following_axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp
from shardy_py.transforms.finish.reshards.partitioner.products import divide_otherwise

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
    kept = _copied(op)
    found = following_axes(op, kept=kept)
    sought = _sought(op)
    looked_up = [factor for factor in op.projection.rule.reduction_factors if found[factor] and factor in sought]
    if not looked_up or not all(op.sizes) or len(op.sizes) <= op.operand_count:
        return found
    divide_otherwise(op, found, allow_fewer=True)
    whole = following_axes(op, gathered=looked_up, kept=kept)
    return whole if _is_smaller(op, whole, found) else found


def _sought(op: PartitionedOp) -> set[int]:
    """Return the factors of the table that the places lack."""
    table, places = op.inputs
    return op.factors(table) - op.factors(places)


def _copied(op: PartitionedOp) -> Sequence[int]:
    """Return the factors of a table that what is looked up there has whole, and along which the table stays divided.

    As in gather_scatter_handler.cc::PartitionGatherOperandPassthroughDimensions.
    """
    return sorted(_sought(op) & op.factors(-1))


def _is_smaller(op: PartitionedOp, whole: Sequence[Axes], summed: Sequence[Axes]) -> bool:
    """Return whether a whole table and what is found there take less memory than sums of results, with their indices.

    As in gather_scatter_handler.cc::GatherPartitionMethodsOrderedByCost; results and indices are masked.
    """
    result = op.operand_count
    return op.memory((0, result), whole) < _MASKED * op.memory(range(1, result + 1), summed)
