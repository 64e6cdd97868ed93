"""Basic factor propagation: only axes on which all tensors of a step agree."""

from __future__ import annotations

from shardy_py.propagation.steps.factors import (
    NO_LISTENER,
    Projection,
    StepContext,
    StepListener,
    Updates,
    compatible_major_axes,
    expand,
    factors_with_axes,
    prefix_across_factors,
    prefix_within_factor,
    truncate_by_conflicts,
)
from shardy_py.sharding.axes import AxisRef


def propagate_basic(projection: Projection, context: StepContext, listener: StepListener = NO_LISTENER) -> Updates:
    """Propagate along every factor, in place.

    Mirrors basic_factor_propagation.cc::propagateFactorShardings.

    Returns:
        Which tensors changed.
    """
    tensors = projection.tensors
    positions = range(len(tensors))
    updated = [False] * len(tensors)
    for factor in factors_with_axes(projection):
        agreed = compatible_major_axes(projection, factor, context.directions[factor])
        if not agreed:
            continue
        listener.agree(factor, agreed)

        def without_conflicts(axis: AxisRef, prev_sharded_size: int, factor: int = factor) -> AxisRef | None:
            return _compatible_prefix(projection, axis, factor, prev_sharded_size, context, listener)

        axes = truncate_by_conflicts(agreed, without_conflicts, context)
        listener.truncate(positions, factor, agreed, axes)
        for index, tensor in enumerate(tensors):
            if expand(tensor, factor, axes):
                updated[index] = True
    return updated


def _compatible_prefix(
    projection: Projection,
    axis: AxisRef,
    factor: int,
    prev_sharded_size: int,
    context: StepContext,
    listener: StepListener,
) -> AxisRef | None:
    """Return the largest prefix of ``axis`` that every tensor can take along the factor.

    Mirrors basic_factor_propagation.cc::compatiblePrefix.
    """
    result = axis
    for position, tensor in enumerate(projection.tensors):
        across = prefix_across_factors(result, tensor, factor)
        if across != result:
            listener.shorten_across(position, factor, result)
        if across is None:
            return None
        result = across
        entry = tensor.factors.get(factor)
        if entry is None:
            # A tensor without the factor cannot take the axis, but must not use it otherwise.
            continue
        size = context.factor_sizes[factor]
        within = prefix_within_factor(result, tensor, entry, prev_sharded_size, size, context.mesh)
        if within != result:
            listener.shorten_within(position, factor, result, prev_sharded_size)
        if within is None:
            return None
        result = within
    return result
