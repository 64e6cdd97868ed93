"""Basic factor propagation: only axes on which all tensors of a step agree."""

from __future__ import annotations

from shardy_py.propagation.steps.factors import (
    Projection,
    StepContext,
    Updates,
    compatible_major_axes,
    expand,
    factors_with_axes,
    prefix_across_factors,
    prefix_within_factor,
    truncate_by_conflicts,
)
from shardy_py.sharding.axes import AxisRef


def propagate_basic(projection: Projection, context: StepContext) -> Updates:
    """Propagate along every factor, in place.

    Returns:
        Which tensors changed.
    """
    tensors = projection.tensors
    updated = [False] * len(tensors)
    for factor in factors_with_axes(projection):
        axes = compatible_major_axes(projection, factor, context.directions[factor])
        if not axes:
            continue

        def without_conflicts(axis: AxisRef, prev_sharded_size: int, factor: int = factor) -> AxisRef | None:
            return _compatible_prefix(projection, axis, factor, prev_sharded_size, context)

        axes = truncate_by_conflicts(axes, without_conflicts, context)
        for index, tensor in enumerate(tensors):
            if expand(tensor, factor, axes):
                updated[index] = True
    return updated


def _compatible_prefix(
    projection: Projection, axis: AxisRef, factor: int, prev_sharded_size: int, context: StepContext
) -> AxisRef | None:
    """Return the largest prefix of ``axis`` that every tensor can take along the factor."""
    result = axis
    for tensor in projection.tensors:
        across = prefix_across_factors(result, tensor, factor)
        if across is None:
            return None
        result = across
        entry = tensor.factors.get(factor)
        if entry is None:
            # A tensor without the factor cannot take the axis, but must not use it otherwise.
            continue
        size = context.factor_sizes[factor]
        within = prefix_within_factor(result, tensor, entry, prev_sharded_size, size, context.mesh)
        if within is None:
            return None
        result = within
    return result
