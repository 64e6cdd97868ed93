"""Dimensions that cannot pass on an axis: over other meshes, along other factors, behind ops without a rule."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason
from shardy_py.trace.slot_dims import SlotDim, axes_of
from shardy_py.trace.slot_refusals import SlotRefusal
from shardy_py.trace.trace import Trace


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
            own = index.factors[position]
            # An op that uses a tensor several times refuses the same each time.
            if (step, own) in seen:
                continue
            seen.add((step, own))
            for other, mapping in enumerate(index.mappings):
                dimensions = self.trace.dimensions_with(slots[other], axis) if slots[other] >= 0 and mapping else ()
                for dimension in dimensions:
                    if not own.isdisjoint(mapping[dimension]):
                        continue
                    source, factor = (slots[other], dimension), mapping[dimension][0]
                    yield SlotRefusal(Reason.NO_DIMENSION, axis, slot_dim, step=step, source=source, factor=factor)

    def behind_ops_without_rule(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals of tensors on the other side of an op without a rule."""
        for op, slots in self.trace.ops_without_rule.get(slot_dim[0], ()):
            for slot in dict.fromkeys(slots):
                for dimension in self.trace.dimensions_with(slot, axis) if slot not in (-1, slot_dim[0]) else ():
                    yield SlotRefusal(Reason.NO_RULE, axis, slot_dim, source=(slot, dimension), detail=str(op))
