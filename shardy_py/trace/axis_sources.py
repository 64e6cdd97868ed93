"""Sources of an axis that a dimension did not get: rivals that lost it, and dimensions that cannot pass it on.

Rivals would have taken the axis after the winner. Dimensions cannot pass an axis on over other meshes, along other
factors, or behind ops without a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from shardy_py.propagation.trace import Visit, rule_of_visit, slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason, StepRefusal
from shardy_py.trace.slots import SlotDim, SlotRefusal, axes_of
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
    """Return the refusal with which a tensor loses the axis once more, or None."""
    for refused in explanation.refused_by(refusal.target, (refusal.factor,)):
        is_same = (refused.target, refused.source, refused.factor) == (refusal.target, refusal.source, refusal.factor)
        if is_same and refused.reason is Reason.LOST and refused.axis.overlaps(refusal.axis):
            return refused
    return None


def _without(sharding: TensorSharding, mapping: TensorMapping, factor: int, axis: AxisRef) -> TensorSharding:
    """Return a sharding without an axis, and those behind it, on the dimensions of a factor."""
    dims = list(sharding.dim_shardings)
    for dimension, factors in enumerate(mapping):
        axes = dims[dimension].axes if factor in factors else ()
        first = next((index for index, held in enumerate(axes) if held.overlaps(axis)), None)
        if first is not None:
            dims[dimension] = evolve(dims[dimension], axes=axes[:first])
    return evolve(sharding, dim_shardings=tuple(dims))


def _holder(
    values: Sequence[TensorSharding | None], mappings: Sequence[TensorMapping], factor: int, axis: AxisRef
) -> int | None:
    """Return the position of a tensor of a step that has an axis along a factor, or None."""
    for position, (value, mapping) in enumerate(zip(values, mappings, strict=True)):
        dims = value.dim_shardings if value is not None else ()
        for dim, factors in zip(dims, mapping, strict=False):
            if factor in factors and any(held.overlaps(axis) for held in dim.axes):
                return position
    return None


def axis_overlaps(axis: AxisRef, sharding: TensorSharding | None, dimension: int) -> bool:
    """Return whether a dimension of a tensor has a part of an axis."""
    return any_overlap((axis,), axes_of(sharding, dimension))


class UnreachableSources:
    """Search for such dimensions in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.last = trace.history.last

    def over_other_meshes(
        self, slot_dim: SlotDim, step: int, position: int, axis: AxisRef, distance: int
    ) -> Iterator[SlotRefusal]:
        """Yield the refusals at a step that sees several meshes, and so does nothing."""
        if self.trace.final_visits.visit(step) is not None and self.trace.final_visits.explain(step) is None:
            yield from self._at(Reason.MESH, slot_dim, step, position, axis, distance)

    def at_manual_border(
        self, slot_dim: SlotDim, step: int, position: int, axis: AxisRef, distance: int
    ) -> Iterator[SlotRefusal]:
        """Yield the refusal of an axis at the edge of a computation that is manual along it."""
        visit = self.trace.final_visits.visit(step) if step in self.trace.problem.transforms else None
        if visit is None:
            return
        slots = self.trace.problem.step_slots[step]
        outside_or_in = self.trace.problem.table.values[visit.seen[-1]], self.last(slots[-1])
        # An argument is seen with the manual axes, a result without them.
        outer, inner = outside_or_in if position == len(slots) - 1 else outside_or_in[::-1]
        if axis_overlaps(axis, outer, slot_dim[1]) and not axis_overlaps(axis, inner, slot_dim[1]):
            yield SlotRefusal(Reason.MANUAL, axis, slot_dim, distance, step)

    def at_erased_op(
        self, slot_dim: SlotDim, step: int, position: int, axis: AxisRef, distance: int
    ) -> Iterator[SlotRefusal]:
        """Yield the refusals at the step of an op that is gone."""
        yield from self._at(Reason.ERASED, slot_dim, step, position, axis, distance)

    def _at(
        self, reason: Reason, slot_dim: SlotDim, step: int, position: int, axis: AxisRef, distance: int
    ) -> Iterator[SlotRefusal]:
        slots, index = self.trace.slots_and_index(step)
        if index is None:
            return
        for factor in index.mappings[position][slot_dim[1]]:
            for source in index.slot_dims(slots, factor):
                if source != slot_dim and any_overlap((axis,), axes_of(self.last(source[0]), source[1])):
                    yield SlotRefusal(reason, axis, slot_dim, distance, step, source=source, factor=factor)

    def along_other_factors(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals of dimensions next to the tensor that have an axis along a factor that it has not."""
        seen: set[tuple[int, frozenset[int]]] = set()
        for step, position in self.trace.steps_at.get(slot_dim[0], ()):
            slots, index = ((), None) if step in self.trace.erased else self.trace.slots_and_index(step)
            if index is None:
                continue
            factors_of_tensor = index.factors[position]
            # An op that uses a tensor several times refuses the same each time.
            if (step, factors_of_tensor) in seen:
                continue
            seen.add((step, factors_of_tensor))
            for other, mapping in enumerate(index.mappings):
                dimensions = self.trace.dimensions_with(slots[other], axis) if slots[other] >= 0 and mapping else ()
                for dimension in dimensions:
                    if not factors_of_tensor.isdisjoint(mapping[dimension]):
                        continue
                    source, factor = (slots[other], dimension), mapping[dimension][0]
                    yield SlotRefusal(Reason.NO_DIMENSION, axis, slot_dim, step=step, source=source, factor=factor)

    def behind_ops_without_rule(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals of tensors on the other side of an op without a rule."""
        for op, slots in self.trace.ops_without_rule.get(slot_dim[0], ()):
            for slot in dict.fromkeys(slots):
                for dimension in self.trace.dimensions_with(slot, axis) if slot not in (-1, slot_dim[0]) else ():
                    yield SlotRefusal(Reason.NO_RULE, axis, slot_dim, source=(slot, dimension), detail=str(op))
