"""Axes that are not on a dimension, and the refusals that kept them away."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from attrs import evolve

from shardy_py.propagation.problem import NO_TIES
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.identity import identity
from shardy_py.trace.axis_sources import UnreachableSources, find_rivals
from shardy_py.trace.chains import find_chains
from shardy_py.trace.reasons import Reason, StepRefusal
from shardy_py.trace.slots import SlotDim, SlotRefusal, axes_of, overlapping
from shardy_py.trace.trace import Trace

_NOT_YET = frozenset((Reason.DIRECTION, Reason.FACTOR_KIND, Reason.PRIORITY))


def find_missing(
    trace: Trace, slot: int, dimension: int, mesh: Mesh
) -> Iterator[tuple[AxisRef, tuple[SlotRefusal, ...]]]:
    """Yield every axis of a mesh, or the part of it, that a dimension has not got, with the refusals.

    Args:
        trace: The trace.
        slot: The tensor.
        dimension: Its dimension.
        mesh: The mesh.
    """
    search = RefusalSearch(trace)
    for axis in mesh.axes:
        whole_axis = AxisRef(axis.name)
        for part in axis_set_difference((whole_axis,), axes_of(trace.history.last(slot), dimension), mesh):
            yield part, tuple(search.refusals((slot, dimension), part))


class RefusalSearch:
    """Search for the refusals behind a missing axis in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.problem = trace.problem
        self.last = trace.history.last
        self.unreachable = UnreachableSources(trace)
        self._by_source: dict[tuple[int, int, int], dict[int, list[StepRefusal]]] = {}
        self._with_axis: dict[tuple[int, int, AxisRef], Sequence[int]] = {}

    def refusals(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals of an axis: by the tensor itself first, then of candidates, the closest first."""
        own_refusals = list(self._own(slot_dim, axis))
        refused = list(self._nearest(slot_dim, axis))
        yield from own_refusals
        yield from refused
        if not refused:
            yield from self._without_candidate(slot_dim, axis, has_own=bool(own_refusals))

    def _own(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals by the tensor itself."""
        slot, dimension = slot_dim
        sharding = self.last(slot)
        if sharding is None:
            return
        for reason, axes in (
            (Reason.REPLICATED, sharding.replicated_axes),
            (Reason.UNREDUCED, sharding.unreduced_axes),
        ):
            if any_overlap((axis,), axes):
                yield SlotRefusal(reason, axis, slot_dim, by=overlapping(axis, axes))
        if sharding.of_dimension(dimension).is_closed:
            yield SlotRefusal(Reason.CLOSED, axis, slot_dim)
        for other in self.trace.dimensions_with(slot, axis):
            if other != dimension:
                by = overlapping(axis, axes_of(sharding, other))
                yield SlotRefusal(Reason.OVERLAP, axis, slot_dim, obstacle=(slot, other), by=by)

    def _nearest(self, slot_dim: SlotDim, axis: AxisRef) -> Iterator[SlotRefusal]:
        """Yield the refusals at the closest corresponding dimensions that have not got the axis."""
        seen, queue = {slot_dim}, deque([(slot_dim, 0)])
        found_at: int | None = None
        passed: set[tuple[int, ...]] = set()
        while queue:
            current, distance = queue.popleft()
            if found_at is not None and distance > found_at:
                return
            for refusal in self._at(current, axis, distance):
                found_at = distance
                yield refusal
            for neighbour in self._neighbours(current, passed):
                if neighbour not in seen:
                    seen.add(neighbour)
                    queue.append((neighbour, distance + 1))

    def _at(self, slot_dim: SlotDim, axis: AxisRef, distance: int) -> Iterator[SlotRefusal]:
        """Yield the refusals of an axis at one dimension, one per step and candidate."""
        slot, dimension = slot_dim
        for member in self._members_with(slot, dimension, axis):
            if member != slot:
                yield SlotRefusal(Reason.GROUP, axis, slot_dim, distance, source=(member, dimension))
        done = set()
        for step, position in self.trace.steps_at.get(slot, ()):
            if step in self.trace.erased:
                yield from self.unreachable.at_erased_op(slot_dim, step, position, axis, distance)
                continue
            yield from self.unreachable.at_manual_border(slot_dim, step, position, axis, distance)
            yield from self.unreachable.over_other_meshes(slot_dim, step, position, axis, distance)
            for number, refusal in self._final_refusals(step, position, dimension, axis):
                key = (step, refusal.source, refusal.factor, refusal.axis)
                if key not in done:
                    done.add(key)
                    yield evolve(self._decisive(slot_dim, step, position, number, refusal), distance=distance)

    def _members_with(self, slot: int, dimension: int, axis: AxisRef) -> Sequence[int]:
        """Return the members of the sharding group of a slot that have a part of an axis on a dimension."""
        ties = self.problem.tied.get(slot)
        if ties is None:
            return ()
        # All members of a group share one list, and each of them asks.
        key = identity(ties.members), dimension, axis
        if key not in self._with_axis:
            slots = dict.fromkeys(member for _, (member, _) in ties.members)
            overlaps = [one for one in slots if any_overlap((axis,), axes_of(self.last(one), dimension))]
            self._with_axis[key] = overlaps
        return self._with_axis[key]

    def refusals_from(self, source: SlotDim, step: int) -> Iterator[SlotRefusal]:
        """Yield the refusals of the axes of a dimension by a step at the end."""
        slots, index = self.trace.slots_and_index(step)
        if index is None:
            return
        for number, refusal in self.trace.final_refusals(step):
            if index.slot_dim(slots, refusal.source, refusal.factor) != source:
                continue
            target = index.slot_dim(slots, refusal.target, refusal.factor)
            if target is not None:
                yield self._decisive(target, step, refusal.target, number, refusal)

    def _final_refusals(
        self, step: int, position: int, dimension: int, axis: AxisRef
    ) -> Iterator[tuple[int | None, StepRefusal]]:
        """Yield the refusals of an axis at a dimension of a step at the end, with the visit that decided."""
        _, index = self.trace.slots_and_index(step)
        if index is None:
            return
        for number, refusal in self.trace.final_refusals(step, position, index.mappings[position][dimension]):
            if refusal.axis.overlaps(axis):
                yield number, refusal

    def _refusals(self, number: int, position: int, dimension: int, source: int) -> Sequence[StepRefusal]:
        """Return the refusals of the axes of a tensor at a dimension of another one in a visit."""
        key = number, position, dimension
        if key not in self._by_source:
            by_source = self._by_source[key] = {}
            visit = self.trace.log.visits[number]
            explanation = self.trace.visits.explain(visit)
            factors = () if explanation is None else explanation.index.mappings[position][dimension]
            for refusal in self.trace.visits.refusals(visit, position, factors):
                by_source.setdefault(refusal.source, []).append(refusal)
        return self._by_source[key].get(source, ())

    def _decisive(
        self, slot_dim: SlotDim, step: int, position: int, number: int | None, refusal: StepRefusal
    ) -> SlotRefusal:
        """Return the last refusal of a candidate, or the one in which it lost, with the reasons of earlier levels."""
        earlier: list[tuple[int, Reason]] = []
        end = number
        for visit_number in self.trace.visits.numbers_of[step]:
            if refusal.reason is Reason.NOT_REVISITED or visit_number == end:
                break
            for before in self._refusals(visit_number, position, slot_dim[1], refusal.source):
                if not before.axis.overlaps(refusal.axis):
                    continue
                if before.reason is Reason.LOST:
                    number, refusal = visit_number, before
                elif before.reason in _NOT_YET:
                    level = self.trace.log.places[self.trace.log.visits[visit_number].place].level
                    earlier.append((level, before.reason))
            if refusal.reason is Reason.LOST:
                break
        others = [(level, reason) for level, reason in earlier if reason is not refusal.reason]
        decisive = self.with_causes(self.trace.slot_refusal(step, number, refusal), refusal)
        return evolve(decisive, earlier=tuple(dict.fromkeys(others)))

    def with_causes(self, slot_refusal: SlotRefusal, refusal: StepRefusal) -> SlotRefusal:
        """Return a refusal with the user priorities and the rivals behind it.

        Args:
            slot_refusal: The refusal by slots.
            refusal: The same in terms of its step.
        """
        number = slot_refusal.visit if slot_refusal.visit >= 0 else len(self.trace.log.visits)
        priorities = self._priorities(slot_refusal, 2 * number + 1)
        if priorities is not None:
            detail = f"{slot_refusal.reason.value}; user priority {priorities[0]} after {priorities[1]}"
            slot_refusal = evolve(slot_refusal, reason=Reason.PRIORITY, detail=detail)
        if refusal.reason is not Reason.LOST:
            return slot_refusal
        return evolve(
            slot_refusal, rivals=tuple(find_rivals(self.trace, self.trace.deciding_visit(slot_refusal), refusal))
        )

    def _priorities(self, slot_refusal: SlotRefusal, time: int) -> tuple[int, int] | None:
        """Return the user priorities of the candidate and of the obstacle, where the first is lower."""
        source, obstacle = slot_refusal.source, slot_refusal.obstacle
        if (
            source is None
            or obstacle is None
            or slot_refusal.reason not in (Reason.OVERLAP, Reason.CONFLICT, Reason.LOST)
        ):
            return None
        priority = self._priority(source, slot_refusal.axis, time)
        other = max([self._priority(obstacle, axis, time) for axis in slot_refusal.by], default=0)
        return (priority, other) if priority > other else None

    def _priority(self, slot_dim: SlotDim, axis: AxisRef, time: int) -> int:
        moment = self.trace.history.before(slot_dim[0], time)
        mesh = self._mesh(slot_dim[0])
        present = axes_of(self.trace.history.sharding(moment), slot_dim[1])
        parts = axis_set_difference((axis,), axis_set_difference((axis,), present, mesh), mesh)
        chains = [chain for part in parts for chain in find_chains(self.trace, *slot_dim, part, time)]
        return max([chain.priority for chain in chains], default=0)

    def _mesh(self, slot: int) -> Mesh:
        sharding = self.last(slot)
        assert sharding is not None, "a tensor with an axis has a sharding"
        return self.problem.table.mesh_of(sharding)

    def _neighbours(self, slot_dim: SlotDim, passed: set[tuple[int, ...]]) -> Iterator[SlotDim]:
        """Yield the dimensions that share a factor with a dimension in some step.

        Args:
            slot_dim: The dimension.
            passed: Steps with their factors, and sharding groups with their dimensions, that are known already; those
                of this dimension are added.
        """
        slot, dimension = slot_dim
        for step, position in self.trace.steps_at.get(slot, ()):
            slots, index = ((), None) if step in self.trace.erased else self.trace.slots_and_index(step)
            if index is None:
                continue
            for factor in index.mappings[position][dimension]:
                if (step, factor) in passed:
                    continue
                passed.add((step, factor))
                yield from index.slot_dims(slots, factor)
        ties = self.problem.tied.get(slot, NO_TIES)
        group = identity(ties.members), dimension, 0
        if group not in passed:
            passed.add(group)
            yield from ((member, dimension) for member, _ in ties.others())

    def _without_candidate(self, slot_dim: SlotDim, axis: AxisRef, *, has_own: bool) -> Iterator[SlotRefusal]:
        """Yield the refusals of an axis that next to the tensor is on no dimension that corresponds."""
        sources = [
            *self.unreachable.along_other_factors(slot_dim, axis),
            *self.unreachable.behind_ops_without_rule(slot_dim, axis),
        ]
        yield from sources
        if not sources and not has_own:
            yield SlotRefusal(Reason.NOT_OFFERED, axis, slot_dim)
