"""The axes along which XLA's SPMD partitioner computes an op: those of its result.

As in XLA's dot_handler.cc::PartitionDot and spmd_partitioner.cc::HandleReduce, HandleElementwise, HandleTranspose.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axis_lists import greatest_common_prefix, truncate_without_overlap
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind
from shardy_py.transforms.finish.reshards.common_axes import non_scalar_tensors
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes


def find_result_axes(projection: OpProjection, operands: int, *, is_result_open: bool = False) -> list[Axes]:
    """Return the axes of every factor.

    Where operands agree along a reduced factor, each device sums its part. All other axes follow from the results, so
    that operands are gathered along axes that results lack; a reduction of one operand computes on it as it is.

    Args:
        projection: The factor shardings; left as they are.
        operands: The number of operands.
        is_result_open: Whether propagation left the results alone, so that they follow the operands.
    """
    compatible = compatible_axes(projection)
    if compatible:
        return compatible
    rule = projection.rule
    axes: list[Axes] = [()] * rule.num_factors
    used: Axes = ()
    reduced = [factor for factor in range(rule.num_factors) if rule.kind(factor) is FactorKind.REDUCTION]
    inputs, results = range(operands), range(operands, len(projection.tensors))
    for factor in reduced:
        axes[factor] = truncate_without_overlap(_common_prefix(projection, inputs, factor), used)
        used += axes[factor]
    sharded = [number for number in non_scalar_tensors(rule) if number < operands]
    # A reduction keeps its only operand, and what comes out is resharded.
    leading = sharded[:1] if is_result_open or (reduced and len(sharded) == 1) else list(results)
    for factor in range(rule.num_factors):
        if factor in reduced or rule.kind(factor) is FactorKind.NEED_REPLICATION:
            continue
        wanted = _first(projection, leading, factor)
        if not wanted and rule.is_batching(factor):
            wanted = _common_prefix(projection, inputs, factor)
        axes[factor] = truncate_without_overlap(wanted, used)
        used += axes[factor]
    return axes


def _common_prefix(projection: OpProjection, tensors: Sequence[int], factor: int) -> Axes:
    """Return the axes with which the axes of all tensors that have a factor start."""
    found: Axes | None = None
    for number in tensors:
        axes = projection.axes(number, factor)
        if axes is not None:
            found = axes if found is None else greatest_common_prefix(found, axes)
    return found or ()


def _first(projection: OpProjection, tensors: Sequence[int], factor: int) -> Axes:
    """Return the axes of the first tensor that has a factor."""
    return next((axes for number in tensors if (axes := projection.axes(number, factor)) is not None), ())
