"""Why an axis is not on a dimension: which tensors wanted to bring it, and what stood in the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from shardy_py.explain.record.chains import find_chains
from shardy_py.explain.record.reason import Reason, Spot, axes_of, overlapping, spot_of, spots_with
from shardy_py.explain.record.reasons import Code, Refusal
from shardy_py.explain.record.rivals import find_rivals
from shardy_py.explain.record.trace import Trace
from shardy_py.explain.record.unreachable_sources import Bystanders
from shardy_py.propagation.trace import rule_of_visit, slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.mesh import Mesh

_NOT_YET = frozenset((Code.DIRECTION, Code.FACTOR_KIND, Code.PRIORITY))


def find_missing(trace: Trace, slot: int, dimension: int, mesh: Mesh) -> Iterator[tuple[AxisRef, tuple[Reason, ...]]]:
    """Yield every axis of a mesh, or the part of it, that a dimension has not got, with the reasons.

    Args:
        trace: The trace.
        slot: The tensor.
        dimension: Its dimension.
        mesh: The mesh.
    """
    search = Search(trace)
    for axis in mesh.axes:
        whole = AxisRef(axis.name)
        for part in axis_set_difference((whole,), axes_of(trace.history.last(slot), dimension), mesh):
            yield part, tuple(search.reasons((slot, dimension), part))


class Search:
    """Looks for reasons in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.problem = trace.problem
        self.last = trace.history.last
        self.bystanders = Bystanders(trace)

    def reasons(self, spot: Spot, axis: AxisRef) -> Iterator[Reason]:
        """Yield why a dimension has not got an axis: the tensor itself first, then candidates, the closest first."""
        own = list(self._own(spot, axis))
        refused = list(self._nearest(spot, axis))
        yield from own
        yield from refused
        if not refused:
            yield from self._without_candidate(spot, axis, has_own=bool(own))

    def _own(self, spot: Spot, axis: AxisRef) -> Iterator[Reason]:
        """Yield what the tensor itself has against an axis."""
        slot, dimension = spot
        sharding = self.last(slot)
        if sharding is None:
            return
        for code, axes in ((Code.REPLICATED, sharding.replicated_axes), (Code.UNREDUCED, sharding.unreduced_axes)):
            if any_overlap((axis,), axes):
                yield Reason(code, axis, spot, by=overlapping(axis, axes))
        if sharding.of_dimension(dimension).is_closed:
            yield Reason(Code.CLOSED, axis, spot)
        for other, dim in enumerate(sharding.dim_shardings):
            if other != dimension and any_overlap((axis,), dim.axes):
                yield Reason(Code.OVERLAP, axis, spot, obstacle=(slot, other), by=overlapping(axis, dim.axes))

    def _nearest(self, spot: Spot, axis: AxisRef) -> Iterator[Reason]:
        """Yield where an axis stopped on its way here: at the closest dimensions that correspond and have it not."""
        seen, queue = {spot}, deque([(spot, 0)])
        found_at: int | None = None
        while queue:
            current, distance = queue.popleft()
            if found_at is not None and distance > found_at:
                return
            for reason in self._at(current, axis, distance):
                found_at = distance
                yield reason
            for neighbour in self._neighbours(current):
                if neighbour not in seen:
                    seen.add(neighbour)
                    queue.append((neighbour, distance + 1))

    def _at(self, spot: Spot, axis: AxisRef, distance: int) -> Iterator[Reason]:
        """Yield the refusals of an axis at one dimension, one per step and candidate."""
        slot, dimension = spot
        for member, _ in self.problem.tied.get(slot, ()):
            if any_overlap((axis,), axes_of(self.last(member), dimension)):
                yield Reason(Code.GROUP, axis, spot, distance, source=(member, dimension))
        done = set()
        for step, position in self.trace.steps_at.get(slot, ()):
            if step in self.trace.erased:
                yield from self.bystanders.at_erased_op(spot, step, position, axis, distance)
                continue
            yield from self.bystanders.at_manual_border(spot, step, position, axis, distance)
            yield from self.bystanders.over_other_meshes(spot, step, position, axis, distance)
            for number, refusal in self._stops(step, position, dimension, axis):
                key = (step, refusal.source, refusal.factor, refusal.axis)
                if key not in done:
                    done.add(key)
                    yield self._reason(spot, step, position, number, refusal, distance)

    def refusals_from(self, source: Spot, step: int) -> Iterator[Reason]:
        """Yield why the axes of a dimension do not go on through a step at the end."""
        slots, mappings = self.trace.shape_of(step)
        for number, refusal in self.trace.stops_of(step):
            if spot_of(slots, mappings, refusal.source, refusal.factor) != source:
                continue
            target = spot_of(slots, mappings, refusal.target, refusal.factor)
            if target is not None:
                yield self._reason(target, step, refusal.target, number, refusal, 0)

    def _stops(self, step: int, position: int, dimension: int, axis: AxisRef) -> Iterator[tuple[int | None, Refusal]]:
        """Yield what keeps an axis from a dimension of a step at the end, with the visit that decided it."""
        _, mappings = self.trace.shape_of(step)
        for number, refusal in self.trace.stops_of(step):
            is_here = refusal.target == position and refusal.factor in mappings[position][dimension]
            if is_here and refusal.axis.overlaps(axis):
                yield number, refusal

    def _refusals(self, number: int, position: int, dimension: int) -> Iterator[Refusal]:
        visit = self.trace.log.visits[number]
        explanation = self.trace.explain_visit(visit)
        if explanation is None:
            return
        factors = explanation.rule.mappings[position][dimension]
        for refusal in self.trace.refused(visit):
            if refusal.target == position and refusal.factor in factors:
                yield refusal

    def _reason(
        self, spot: Spot, step: int, position: int, number: int | None, refusal: Refusal, distance: int
    ) -> Reason:
        """Return the reason behind the last refusal of a candidate, or behind the one in which it lost to another."""
        earlier: list[tuple[int, Code]] = []
        end = number
        for one in self.trace.visits_of[step]:
            if refusal.code is Code.NOT_REVISITED or one == end:
                break
            for before in self._refusals(one, position, spot[1]):
                if before.source != refusal.source or not before.axis.overlaps(refusal.axis):
                    continue
                if before.code is Code.LOST:
                    number, refusal = one, before
                elif before.code in _NOT_YET:
                    level = self.trace.log.places[self.trace.log.visits[one].place].level
                    earlier.append((level, before.code))
            if refusal.code is Code.LOST:
                break
        others = [one for one in earlier if one[1] is not refusal.code]
        return self.make(spot, step, number, refusal, distance, tuple(dict.fromkeys(others)))

    def make(
        self,
        spot: Spot,
        step: int,
        number: int | None,
        refusal: Refusal,
        distance: int = 0,
        earlier: tuple[tuple[int, Code], ...] = (),
    ) -> Reason:
        """Return the reason behind a refusal at a dimension; without a visit, of what stands in the way at the end."""
        visit = self.trace.ending.visit(step) if number is None else self.trace.log.visits[number]
        assert visit is not None, "what was never visited refuses nothing"
        slots, rule = slots_of_visit(self.problem, step), rule_of_visit(self.problem, visit)
        source = spot_of(slots, rule.mappings, refusal.source, refusal.factor)
        obstacle = None
        if refusal.other is not None:
            factor = refusal.factor if refusal.other_factor is None else refusal.other_factor
            obstacle = spot_of(slots, rule.mappings, refusal.other, factor)
        code, detail = refusal.code, refusal.detail
        time = 2 * (len(self.trace.log.visits) if number is None else number) + 1
        priorities = self._priorities(source, obstacle, refusal, time)
        if priorities is not None:
            code, detail = Code.PRIORITY, f"{refusal.code.value}; user priority {priorities[0]} after {priorities[1]}"
        return Reason(
            code,
            refusal.axis,
            spot,
            distance,
            step,
            -1 if number is None else number,
            self.trace.log.places[visit.place],
            source,
            refusal.factor,
            obstacle,
            refusal.by,
            earlier,
            detail,
            tuple(find_rivals(self.trace, visit, refusal)) if refusal.code is Code.LOST else (),
        )

    def _priorities(
        self, source: Spot | None, obstacle: Spot | None, refusal: Refusal, time: int
    ) -> tuple[int, int] | None:
        """Return the user priorities of the candidate and of what stood in the way, where the first is lower."""
        if source is None or obstacle is None or refusal.code not in (Code.OVERLAP, Code.CONFLICT, Code.LOST):
            return None
        own = self._priority(source, refusal.axis, time)
        other = max([self._priority(obstacle, axis, time) for axis in refusal.by], default=0)
        return (own, other) if own > other else None

    def _priority(self, spot: Spot, axis: AxisRef, time: int) -> int:
        moment = self.trace.history.before(spot[0], time)
        mesh = self._mesh(spot[0])
        present = axes_of(self.trace.history.sharding(moment), spot[1])
        parts = axis_set_difference((axis,), axis_set_difference((axis,), present, mesh), mesh)
        chains = [chain for part in parts for chain in find_chains(self.trace, *spot, part, time)]
        return max([chain.priority for chain in chains], default=0)

    def _mesh(self, slot: int) -> Mesh:
        sharding = self.last(slot)
        assert sharding is not None, "a tensor with an axis has a sharding"
        return self.problem.table.mesh_of(sharding)

    def _neighbours(self, spot: Spot) -> Iterator[Spot]:
        """Yield the dimensions that share a factor with a dimension in some step."""
        slot, dimension = spot
        for step, position in self.trace.steps_at.get(slot, ()):
            slots, mappings = ((), ()) if step in self.trace.erased else self.trace.shape_of(step)
            for factor in mappings[position][dimension] if mappings else ():
                yield from spots_with(slots, mappings, factor)
        for member, _ in self.problem.tied.get(slot, ()):
            yield member, dimension

    def _without_candidate(self, spot: Spot, axis: AxisRef, *, has_own: bool) -> Iterator[Reason]:
        """Yield why nobody could bring an axis: next to the tensor, it is on no dimension that corresponds."""
        found = [*self.bystanders.along_other_factors(spot, axis), *self.bystanders.behind_bare_ops(spot, axis)]
        yield from found
        if not found and not has_own:
            yield Reason(Code.NOT_OFFERED, axis, spot)
