"""Chains of moves: the way of an axis to a dimension, back to the annotation it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from shardy_py.propagation.trace import slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.trace.annotations import Annotation
from shardy_py.trace.history import Cause, ShardingChange
from shardy_py.trace.slot_moves import GROUP, SlotMove, dimension_of, direction_of
from shardy_py.trace.slots import axes_of
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen


@frozen(eq=False)
class SlotChain:
    """The way of an axis, or of a part of it, to a dimension.

    Args:
        axis: The axis or part.
        moves: The moves, the last one first.
        slot: The slot of the tensor where it starts.
        dimension: The dimension where it starts.
        annotation: The annotation there.
        priority: The user priority with which it came into play.
    """

    axis: AxisRef
    moves: tuple[SlotMove, ...]
    slot: int
    dimension: int
    annotation: Annotation
    priority: int

    @property
    def time(self) -> int:
        """The time at which the axis arrived; -1 if it was there from the start (see `ShardingChange`)."""
        return 2 * self.moves[0].visit + 1 if self.moves else -1


def find_chains(
    trace: Trace, slot: int, dimension: int, axis: AxisRef, time: int | None = None
) -> tuple[SlotChain, ...]:
    """Return the chains of an axis of a dimension of a tensor, one per part that came on a way of its own.

    Args:
        trace: The trace.
        slot: The tensor.
        dimension: The dimension.
        axis: The axis, or a part of it, that the dimension has.
        time: The time (see `ShardingChange`) before which the axis is followed; by default the end.
    """
    end = 2 * len(trace.log.visits) + 2
    return tuple(_Finder(trace).chains(slot, dimension, axis, end if time is None else time))


class _Finder:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.history = trace.history

    def chains(self, slot: int, dimension: int, axis: AxisRef, time: int) -> Iterator[SlotChain]:
        """Yield the chains of an axis that a dimension has before a time; chains may be as long as the program."""
        pending: list[tuple[SlotMove | SlotChain, _Moves]] = [
            (step, None) for step in self._steps(slot, dimension, axis, time)
        ]
        pending.reverse()
        while pending:
            step_or_chain, behind = pending.pop()
            if isinstance(step_or_chain, SlotChain):
                yield evolve(step_or_chain, moves=_unroll(behind))
                continue
            end = 2 * step_or_chain.visit + (2 if step_or_chain.direction == GROUP else 1)
            steps = list(self._steps(step_or_chain.source, step_or_chain.source_dimension, step_or_chain.axis, end))
            pending.extend((step, (step_or_chain, behind)) for step in reversed(steps))

    def _steps(self, slot: int, dimension: int, axis: AxisRef, time: int) -> Iterator[SlotMove | SlotChain]:
        """Yield the last move of each part of an axis to a dimension, or the start of its chain."""
        mesh = self._mesh(slot, time)
        rest = _common((axis,), axes_of(self.history.sharding(self.history.before(slot, time)), dimension), mesh)
        for part in axis_set_difference((axis,), rest, mesh):
            # A manual axis, which is on the annotation only, as seen from outside the manual computation.
            yield self._start(slot, dimension, part)
        for moment, before in self.history.backwards(slot, time):
            arrived = axis_set_difference(rest, axes_of(before, dimension), mesh)
            for part in arrived:
                yield from self._arrivals(slot, dimension, part, moment, mesh)
            rest = axis_set_difference(rest, arrived, mesh)
            if not rest:
                return

    def _mesh(self, slot: int, time: int) -> Mesh:
        sharding = self.history.sharding(self.history.before(slot, time))
        assert sharding is not None, "a dimension with an axis has a sharding"
        return self.trace.problem.table.mesh_of(sharding)

    def _arrivals(
        self, slot: int, dimension: int, axis: AxisRef, moment: ShardingChange, mesh: Mesh
    ) -> Iterator[SlotMove | SlotChain]:
        """Yield the moves, or the starts of chains, by which an axis arrived at one moment."""
        trace = self.trace
        if moment.cause in (Cause.START, Cause.PRIORITY):
            yield self._start(slot, dimension, axis)
            return
        visit = trace.log.visits[moment.visit]
        slots = slots_of_visit(trace.problem, visit.step)
        place, step = trace.log.places[visit.place], visit.step
        if moment.cause is Cause.GROUP:
            member = slots[moment.position]
            yield SlotMove(slot, dimension, member, dimension, axis, step, moment.visit, place, -1, GROUP)
            return
        explanation = trace.visits.explain(visit)
        assert explanation is not None, "a visit that changed something has a mesh"
        factors = explanation.rule.mappings[moment.position][dimension]
        for accepted in explanation.accepted_by(moment.position, factors):
            source = (slots[accepted.source], dimension_of(explanation, accepted.source, accepted.factor))
            direction = direction_of(explanation, accepted.source, accepted.target)
            for part in _common((axis,), (accepted.axis,), mesh):
                yield SlotMove(slot, dimension, *source, part, step, moment.visit, place, accepted.factor, direction)

    def _start(self, slot: int, dimension: int, axis: AxisRef) -> SlotChain:
        annotation = self.trace.annotations[slot]
        priority = annotation.sharding.of_dimension(dimension).priority_or_default
        return SlotChain(axis, (), slot, dimension, annotation, priority)


_Moves = tuple[SlotMove, Any] | None
"""The last move of a list and what stands before it."""


def _unroll(moves: _Moves) -> tuple[SlotMove, ...]:
    unrolled: list[SlotMove] = []
    while moves is not None:
        move, moves = moves
        unrolled.append(move)
    return tuple(reversed(unrolled))


def _common(first: tuple[AxisRef, ...], second: tuple[AxisRef, ...], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return the axes that both lists have."""
    return axis_set_difference(first, axis_set_difference(first, second, mesh), mesh)
