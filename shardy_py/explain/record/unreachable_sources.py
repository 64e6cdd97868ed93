"""Tensors with an axis that they cannot offer: over other meshes, along other factors, behind ops without a rule."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.record.reason import Reason, Spot, axes_of, spots_with
from shardy_py.explain.record.reasons import Code
from shardy_py.explain.record.trace import Trace
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.tensor import TensorSharding


def axis_overlaps(axis: AxisRef, sharding: TensorSharding | None, dimension: int) -> bool:
    """Return whether a dimension of a tensor has a part of an axis."""
    return any_overlap((axis,), axes_of(sharding, dimension))


class Bystanders:
    """Looks for such tensors in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.last = trace.history.last

    def over_other_meshes(self, spot: Spot, step: int, position: int, axis: AxisRef, distance: int) -> Iterator[Reason]:
        """Yield the tensors that have an axis, at a step that sees several meshes and so does nothing."""
        if self.trace.ending.visit(step) is not None and self.trace.ending.explain(step) is None:
            yield from self._at(Code.MESH, spot, step, position, axis, distance)

    def at_manual_border(self, spot: Spot, step: int, position: int, axis: AxisRef, distance: int) -> Iterator[Reason]:
        """Yield that an axis is manual inside, at the step of an edge of a computation that is manual along it."""
        visit = self.trace.ending.visit(step) if step in self.trace.problem.transforms else None
        if visit is None:
            return
        slots = self.trace.problem.step_slots[step]
        outside_or_in = self.trace.problem.table.values[visit.seen[-1]], self.last(slots[-1])
        # An argument is seen with the manual axes, a result without them.
        outer, inner = outside_or_in if position == len(slots) - 1 else outside_or_in[::-1]
        if axis_overlaps(axis, outer, spot[1]) and not axis_overlaps(axis, inner, spot[1]):
            yield Reason(Code.MANUAL, axis, spot, distance, step)

    def at_erased_op(self, spot: Spot, step: int, position: int, axis: AxisRef, distance: int) -> Iterator[Reason]:
        """Yield the tensors that have an axis, at the step of an op that is gone."""
        yield from self._at(Code.ERASED, spot, step, position, axis, distance)

    def _at(self, code: Code, spot: Spot, step: int, position: int, axis: AxisRef, distance: int) -> Iterator[Reason]:
        slots, mappings = self.trace.shape_of(step)
        for factor in mappings[position][spot[1]] if mappings else ():
            for source in spots_with(slots, mappings, factor):
                if source != spot and any_overlap((axis,), axes_of(self.last(source[0]), source[1])):
                    yield Reason(code, axis, spot, distance, step, source=source, factor=factor)

    def along_other_factors(self, spot: Spot, axis: AxisRef) -> Iterator[Reason]:
        """Yield the dimensions next to the tensor that have an axis along a factor that the tensor has not."""
        for step, position in self.trace.steps_at.get(spot[0], ()):
            slots, mappings = ((), ()) if step in self.trace.erased else self.trace.shape_of(step)
            if not mappings:
                continue
            own = {factor for factors in mappings[position] for factor in factors}
            for other, mapping in enumerate(mappings):
                for dimension, factors in enumerate(mapping):
                    if slots[other] < 0 or own.intersection(factors):
                        continue
                    if any_overlap((axis,), axes_of(self.last(slots[other]), dimension)):
                        source = (slots[other], dimension)
                        yield Reason(Code.NO_DIMENSION, axis, spot, step=step, source=source, factor=factors[0])

    def behind_bare_ops(self, spot: Spot, axis: AxisRef) -> Iterator[Reason]:
        """Yield the tensors that have an axis on the other side of an op without a rule."""
        for op, slots in self.trace.bare.get(spot[0], ()):
            for slot in dict.fromkeys(slots):
                sharding = self.last(slot) if slot not in (-1, spot[0]) else None
                for dimension, dim in enumerate(sharding.dim_shardings if sharding else ()):
                    if any_overlap((axis,), dim.axes):
                        yield Reason(Code.NO_RULE, axis, spot, source=(slot, dimension), detail=str(op))
