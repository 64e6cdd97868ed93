"""Aggressive factor propagation: conflicts between factors are resolved tensor by tensor."""

from __future__ import annotations

from math import prod

from shardy_py.propagation.steps.factors import (
    NO_LISTENER,
    Projection,
    Rank,
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
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import is_strict_prefix
from shardy_py.sharding.projection import Axes, TensorFactorShardings


def propagate_aggressive(projection: Projection, context: StepContext, listener: StepListener = NO_LISTENER) -> Updates:
    """Propagate along every factor, the preferred factors first, in place.

    Mirrors aggressive_factor_propagation.cc::propagateFactorShardings.

    Returns:
        Which tensors changed.
    """
    tensors, num_operands = projection.tensors, len(projection.operands)
    updated = [False] * len(tensors)
    agreed: list[Axes] = [()] * len(context.directions)
    for factor in factors_with_axes(projection):
        axes = agreed[factor] = compatible_major_axes(projection, factor, context.directions[factor])
        if axes:
            listener.agree(factor, axes)
    if not any(agreed):
        return updated
    order = _by_preference(projection, agreed, context, listener)
    for position in (*range(num_operands, len(tensors)), *range(num_operands)):
        tensor = tensors[position]
        for factor in order:
            axes = _axes_for(tensor, position, factor, agreed[factor], context, listener)
            if axes and context.is_elementwise and position < num_operands:
                limited = _limit_to_results(projection, factor, axes)
                listener.limit(position, factor, axes, limited)
                axes = limited
            if axes and expand(tensor, factor, axes):
                updated[position] = True
    return updated


def _by_preference(
    projection: Projection, agreed: list[Axes], context: StepContext, listener: StepListener
) -> list[int]:
    """Return the factors that have axes by preference.

    The factor whose axes come from the largest tensor wins; among elementwise ops the most sharded factor is next;
    then the earlier source tensor, then the earlier factor.
    """
    candidates = [factor for factor, axes in enumerate(agreed) if axes]
    if len(candidates) == 1:
        return candidates
    sources = _source_tensors(projection, agreed, context)
    ranks = []
    for factor in candidates:
        size, tensor = sources[factor]
        sharded = axes_size(agreed[factor], context.mesh) if context.is_elementwise else 0
        ranks.append(Rank(size, sharded, tensor, factor))
    listener.rank(ranks)
    ranks.sort(key=lambda rank: (-rank.size, -rank.sharded, rank.tensor, rank.factor))
    return [rank.factor for rank in ranks]


def _source_tensors(projection: Projection, agreed: list[Axes], context: StepContext) -> list[tuple[int, int]]:
    """Return, per factor, the size and the position of the largest tensor its axes come from; -1 for none.

    Mirrors aggressive_factor_propagation.cc::getFactorToSourceTensor.
    """
    sources = [(-1, -1)] * len(agreed)
    for position, tensor in enumerate(projection.tensors):
        size = prod(context.factor_sizes[factor] for factor in tensor.factors)
        for factor, entry in tensor.factors.items():
            axes = agreed[factor]
            is_source = axes and (axes == entry.axes or is_strict_prefix(axes, entry.axes))
            if is_source and size > sources[factor][0]:
                sources[factor] = (size, position)
    return sources


def _axes_for(
    tensor: TensorFactorShardings,
    position: int,
    factor: int,
    agreed: Axes,
    context: StepContext,
    listener: StepListener,
) -> Axes:
    """Return the axes that a tensor can take along a factor, or () for nothing new.

    Mirrors aggressive_factor_propagation.cc::getPropagatedFactorSharding.
    """
    entry = tensor.factors.get(factor)
    if entry is None or entry.axes == agreed:
        return ()
    size = context.factor_sizes[factor]

    def within(axis: AxisRef, prev_sharded_size: int) -> AxisRef | None:
        prefix = prefix_within_factor(axis, tensor, entry, prev_sharded_size, size, context.mesh)
        if prefix != axis:
            listener.shorten_within(position, factor, axis, prev_sharded_size)
        return prefix

    def across(axis: AxisRef, _: int) -> AxisRef | None:
        prefix = prefix_across_factors(axis, tensor, factor)
        if prefix != axis:
            listener.shorten_across(position, factor, axis)
        return prefix

    fitting = truncate_by_conflicts(agreed, within, context)
    listener.truncate((position,), factor, agreed, fitting)
    if not is_strict_prefix(entry.axes, fitting):
        return ()
    free = truncate_by_conflicts(fitting, across, context)
    listener.truncate((position,), factor, fitting, free)
    return free


def _limit_to_results(projection: Projection, factor: int, axes: Axes) -> Axes:
    """Return the axes an operand of an elementwise op may take sideways: no more than the results have.

    Otherwise a constraint on one operand would shard the others although the result has to be replicated.
    """
    for tensor in projection.results:
        entry = tensor.factors.get(factor)
        if entry is not None and is_strict_prefix(entry.axes, axes):
            axes = entry.axes
    return axes
