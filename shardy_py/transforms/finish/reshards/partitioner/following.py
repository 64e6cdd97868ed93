"""Ops of any kind: devices sum parts where operands agree, and all other axes follow from the results.

As in XLA's spmd_partitioner.cc::HandleReduce, HandleElementwise, HandleTranspose, HandleConcatenate.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axis_lists import truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp, all_axes
from shardy_py.transforms.finish.reshards.partitioner.products import (
    divide_otherwise,
    is_held_elsewhere,
    is_product,
    sum_where_operands_disagree,
)


def following_axes(op: PartitionedOp, *, gathered: Sequence[int] = (), kept: Sequence[int] = ()) -> list[Axes]:
    """Return the axes of every factor.

    Args:
        op: The op.
        gathered: The reduced factors along which operands are gathered instead of summed.
        kept: The factors along which the first operand stays as it is; they come before all others.
    """
    rule = op.projection.rule
    axes: list[Axes] = [()] * rule.num_factors
    for factor in rule.reduction_factors:
        if factor not in gathered:
            axes[factor] = truncate_without_overlap(op.common_prefix(factor), all_axes(axes))
    leading = _leading(op)
    for factor in (*kept, *(one for one in range(rule.num_factors) if one not in kept)):
        if rule.kind(factor) in (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION):
            continue
        own = op.projection.axes(0, factor) if factor in kept else ()
        wanted = own or _wanted_axes(op, leading, factor)
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
        wanted = next((found for number in leading if (found := op.projection.axes(number, factor))), ())
    if not wanted and len(op.inputs) > 1 and op.projection.rule.is_batching(factor):
        wanted = op.common_prefix(factor)
    return wanted
