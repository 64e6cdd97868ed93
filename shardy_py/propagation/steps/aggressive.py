"""Aggressive factor propagation: conflicts between factors are resolved tensor by tensor."""

from __future__ import annotations

from math import prod

from shardy_py.propagation.steps.factors import (
    Projection,
    StepContext,
    Updates,
    compatible_major_axes,
    expand,
    factors_with_axes,
    is_strict_prefix,
    prefix_across_factors,
    prefix_within_factor,
    truncate_by_conflicts,
)
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.projection import Axes, TensorFactorShardings


def propagate_aggressive(projection: Projection, context: StepContext) -> Updates:
    """Propagate along every factor, the preferred factors first, in place.

    Returns:
        Which tensors changed.
    """
    num_operands = len(projection.operands)
    updated = [False] * (num_operands + len(projection.results))
    axes_per_factor: list[Axes] = [()] * len(context.directions)
    for factor in factors_with_axes(projection):
        axes_per_factor[factor] = compatible_major_axes(projection, factor, context.directions[factor])
    if not any(axes_per_factor):
        return updated
    order = preference(projection, axes_per_factor, context)
    for index, tensor in enumerate(projection.results):
        for factor in order:
            axes = _axes_for(tensor, factor, axes_per_factor[factor], context)
            if axes and expand(tensor, factor, axes):
                updated[num_operands + index] = True
    for index, tensor in enumerate(projection.operands):
        for factor in order:
            axes = _axes_for(tensor, factor, axes_per_factor[factor], context)
            if axes and context.is_elementwise:
                axes = limit_to_results(projection, factor, axes)
            if axes and expand(tensor, factor, axes):
                updated[index] = True
    return updated


def preference(projection: Projection, axes_per_factor: list[Axes], context: StepContext) -> list[int]:
    """Return the factors that have axes by preference.

    The factor whose axes come from the largest tensor wins; among elementwise ops the most sharded factor is next;
    then the earlier source tensor, then the earlier factor.
    """
    candidates = [factor for factor, axes in enumerate(axes_per_factor) if axes]
    if len(candidates) == 1:
        return candidates
    sources = source_tensors(projection, axes_per_factor, context)

    def key(factor: int) -> tuple[int, int, int, int]:
        size, index = sources[factor]
        sharded = axes_size(axes_per_factor[factor], context.mesh) if context.is_elementwise else 0
        return (-size, -sharded, index, factor)

    return sorted(candidates, key=key)


def source_tensors(projection: Projection, axes_per_factor: list[Axes], context: StepContext) -> list[tuple[int, int]]:
    """Return, per factor, the size and the index of the largest tensor its axes come from; -1 for none."""
    sources = [(-1, -1)] * len(axes_per_factor)
    for index, tensor in enumerate(projection.tensors):
        size = prod(context.factor_sizes[factor] for factor in tensor.factors)
        for factor, entry in tensor.factors.items():
            axes = axes_per_factor[factor]
            is_source = axes and (axes == entry.axes or is_strict_prefix(axes, entry.axes))
            if is_source and size > sources[factor][0]:
                sources[factor] = (size, index)
    return sources


def _axes_for(tensor: TensorFactorShardings, factor: int, axes: Axes, context: StepContext) -> Axes:
    """Return what of the wanted axes the tensor can take along a factor, or () for nothing new."""
    entry = tensor.factors.get(factor)
    if entry is None or entry.axes == axes:
        return ()
    size = context.factor_sizes[factor]

    def within(axis: AxisRef, prev_sharded_size: int) -> AxisRef | None:
        return prefix_within_factor(axis, tensor, entry, prev_sharded_size, size, context.mesh)

    axes = truncate_by_conflicts(axes, within, context)
    if not is_strict_prefix(entry.axes, axes):
        return ()

    def across(axis: AxisRef, _: int) -> AxisRef | None:
        return prefix_across_factors(axis, tensor, factor)

    return truncate_by_conflicts(axes, across, context)


def limit_to_results(projection: Projection, factor: int, axes: Axes) -> Axes:
    """Return the axes an operand of an elementwise op may take sideways: no more than the results have.

    Otherwise a constraint on one operand would shard the others although the result has to be replicated.
    """
    for tensor in projection.results:
        entry = tensor.factors.get(factor)
        if entry is not None and is_strict_prefix(entry.axes, axes):
            axes = entry.axes
    return axes
