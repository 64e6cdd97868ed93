"""Rivals of a lost axis: the dimensions that would have taken it after the winner, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from shardy_py.propagation.trace import Visit, rule_of_visit, slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason, StepRefusal
from shardy_py.trace.slot_dims import SlotDim
from shardy_py.trace.step import StepExplanation
from shardy_py.trace.trace import Trace


def find_rivals(trace: Trace, visit: Visit, refusal: StepRefusal) -> Iterator[SlotDim]:
    """Yield the dimensions behind the factors that would have taken a lost axis in turn, had the winner not wanted it.

    Each is a dimension of a tensor of the step that has the axis along such a factor. The visit is repeated without
    the axis on the winner's dimensions, then without that of the next one, and so on.

    Args:
        trace: The trace.
        visit: The visit in which the axis was lost.
        refusal: The refusal.
    """
    rule, slots = rule_of_visit(trace.problem, visit), slots_of_visit(trace.problem, visit.step)
    values = [trace.problem.table.values[number] for number in visit.seen]
    lost: StepRefusal | None = refusal
    for _ in range(rule.num_factors):
        if lost is None or lost.other_factor is None:
            return
        factor = lost.other_factor
        values = [
            None if value is None else _without(value, rule.mappings[position], factor, refusal.axis)
            for position, value in enumerate(values)
        ]
        lost = _still_lost(trace.visits.explain_with(visit, values), refusal)
        if lost is not None and lost.other_factor is not None:
            holder = _holder(values, rule.mappings, lost.other_factor, refusal.axis)
            slot_dim = None if holder is None else trace.index_of(rule).slot_dim(slots, holder, lost.other_factor)
            if slot_dim is not None:
                yield slot_dim


def _still_lost(explanation: StepExplanation, refusal: StepRefusal) -> StepRefusal | None:
    """Rivals of a lost axis: the dimensions that would have taken it after the winner, one after the other."""
    for one in explanation.refused_by(refusal.target, (refusal.factor,)):
        is_same = (one.target, one.source, one.factor) == (refusal.target, refusal.source, refusal.factor)
        if is_same and one.reason is Reason.LOST and one.axis.overlaps(refusal.axis):
            return one
    return None


def _without(sharding: TensorSharding, mapping: TensorMapping, factor: int, axis: AxisRef) -> TensorSharding:
    """Rivals of a lost axis: the dimensions that would have taken it after the winner, one after the other."""
    dims = list(sharding.dim_shardings)
    for dimension, factors in enumerate(mapping):
        axes = dims[dimension].axes if factor in factors else ()
        first = next((index for index, one in enumerate(axes) if one.overlaps(axis)), None)
        if first is not None:
            dims[dimension] = evolve(dims[dimension], axes=axes[:first])
    return evolve(sharding, dim_shardings=tuple(dims))


def _holder(
    values: Sequence[TensorSharding | None], mappings: Sequence[TensorMapping], factor: int, axis: AxisRef
) -> int | None:
    """Rivals of a lost axis: the dimensions that would have taken it after the winner, one after the other."""
    for position, (value, mapping) in enumerate(zip(values, mappings, strict=True)):
        dims = value.dim_shardings if value is not None else ()
        for dim, factors in zip(dims, mapping, strict=False):
            if factor in factors and any(one.overlaps(axis) for one in dim.axes):
                return position
    return None
