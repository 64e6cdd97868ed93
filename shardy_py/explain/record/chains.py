"""How an axis got onto a dimension: op by op back to the annotation it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from shardy_py.explain.record.annotations import Annotation
from shardy_py.explain.record.events import dimension_of, direction_of
from shardy_py.explain.record.history import Cause, Moment
from shardy_py.explain.record.labels import OpLabel
from shardy_py.explain.record.trace import Trace
from shardy_py.propagation.trace import Place, slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

GROUP = "group"


@frozen(eq=False)
class Link:
    """One move of an axis: from a dimension of one tensor to a dimension of another one.

    Args:
        slot: The slot of the tensor that got the axis.
        dimension: The dimension that got it.
        source: The slot of the tensor it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part of it that moved.
        visit: The number of the visit.
        place: The user priority, the level, and the strategy.
        op: The op; for a sharding group, that of the step that changed another member.
        factor: The factor; -1 for a sharding group.
        direction: ``forward``, ``backward``, ``sideways``, or ``group``.
    """

    slot: int
    dimension: int
    source: int
    source_dimension: int
    axis: AxisRef
    visit: int
    place: Place
    op: OpLabel
    factor: int
    direction: str


@frozen(eq=False)
class Chain:
    """How an axis, or a part of it, got onto a dimension.

    Args:
        axis: The axis or part.
        links: The moves, the last one first.
        slot: The slot of the tensor where it starts.
        dimension: The dimension where it starts.
        annotation: The annotation there.
        priority: The user priority with which it came into play.
    """

    axis: AxisRef
    links: tuple[Link, ...]
    slot: int
    dimension: int
    annotation: Annotation
    priority: int

    @property
    def time(self) -> int:
        """The time at which the axis arrived; -1 if it was there from the start (see `Moment`)."""
        return 2 * self.links[0].visit + 1 if self.links else -1


def find_chains(trace: Trace, slot: int, dimension: int, axis: AxisRef, time: int | None = None) -> tuple[Chain, ...]:
    """Return how an axis got onto a dimension of a tensor, part by part where the parts came on different ways.

    Args:
        trace: The trace.
        slot: The tensor.
        dimension: The dimension.
        axis: The axis, or a part of it, that the dimension has.
        time: Look at what was before this time (see `Moment`); by default at the end.
    """
    end = 2 * len(trace.log.visits) + 2
    return tuple(_Finder(trace).chains(slot, dimension, axis, end if time is None else time))


class _Finder:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.history = trace.history

    def chains(self, slot: int, dimension: int, axis: AxisRef, time: int) -> Iterator[Chain]:
        """Yield the chains of an axis that a dimension has before a time; chains may be as long as the program."""
        pending: list[tuple[Link | Chain, _Links]] = [(one, None) for one in self._steps(slot, dimension, axis, time)]
        pending.reverse()
        while pending:
            found, behind = pending.pop()
            if isinstance(found, Chain):
                yield evolve(found, links=_unroll(behind))
                continue
            end = 2 * found.visit + (2 if found.direction == GROUP else 1)
            steps = list(self._steps(found.source, found.source_dimension, found.axis, end))
            pending.extend((one, (found, behind)) for one in reversed(steps))

    def _steps(self, slot: int, dimension: int, axis: AxisRef, time: int) -> Iterator[Link | Chain]:
        """Yield how an axis came onto a dimension: by one move, or as the start of a chain; part by part."""
        mesh = self._mesh(slot, time)
        rest = _common((axis,), _axes(self.history.sharding(self.history.before(slot, time)), dimension), mesh)
        for part in axis_set_difference((axis,), rest, mesh):
            # A manual axis, which is on the annotation only, as seen from outside the manual computation.
            yield self._start(slot, dimension, part)
        for moment, before in self.history.backwards(slot, time):
            arrived = axis_set_difference(rest, _axes(before, dimension), mesh)
            for part in arrived:
                yield from self._arrivals(slot, dimension, part, moment, mesh)
            rest = axis_set_difference(rest, arrived, mesh)
            if not rest:
                return

    def _mesh(self, slot: int, time: int) -> Mesh:
        sharding = self.history.sharding(self.history.before(slot, time))
        assert sharding is not None, "a dimension with an axis has a sharding"
        return self.trace.problem.table.mesh_of(sharding)

    def _arrivals(self, slot: int, dimension: int, axis: AxisRef, moment: Moment, mesh: Mesh) -> Iterator[Link | Chain]:
        """Yield how an axis arrived at one moment."""
        trace = self.trace
        if moment.cause in (Cause.START, Cause.PRIORITY):
            yield self._start(slot, dimension, axis)
            return
        visit = trace.log.visits[moment.visit]
        slots = slots_of_visit(trace.problem, visit.step)
        place, op = trace.log.places[visit.place], trace.labels.of_step[visit.step]
        if moment.cause is Cause.GROUP:
            member = slots[moment.position]
            yield Link(slot, dimension, member, dimension, axis, moment.visit, place, op, -1, GROUP)
            return
        explanation = trace.explain_visit(visit)
        assert explanation is not None, "a visit that changed something has a mesh"
        factors = explanation.rule.mappings[moment.position][dimension]
        for accepted in explanation.accepted:
            if accepted.target != moment.position or accepted.factor not in factors:
                continue
            source = (slots[accepted.source], dimension_of(explanation, accepted.source, accepted.factor))
            direction = direction_of(explanation, accepted.source, accepted.target)
            for part in _common((axis,), (accepted.axis,), mesh):
                yield Link(slot, dimension, *source, part, moment.visit, place, op, accepted.factor, direction)

    def _start(self, slot: int, dimension: int, axis: AxisRef) -> Chain:
        annotation = self.trace.annotations[slot]
        priority = annotation.sharding.of_dimension(dimension).priority_or_default
        return Chain(axis, (), slot, dimension, annotation, priority)


_Links = tuple[Link, Any] | None
"""The last link of a list and what stands before it."""


def _unroll(links: _Links) -> tuple[Link, ...]:
    found: list[Link] = []
    while links is not None:
        link, links = links
        found.append(link)
    return tuple(reversed(found))


def _axes(sharding: TensorSharding | None, dimension: int) -> tuple[AxisRef, ...]:
    return () if sharding is None else sharding.of_dimension(dimension).axes


def _common(first: tuple[AxisRef, ...], second: tuple[AxisRef, ...], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return what both lists have."""
    return axis_set_difference(first, axis_set_difference(first, second, mesh), mesh)
