"""From chains and reasons over slots to explanations with names."""

from __future__ import annotations

from shardy_py.explain.answer.explanation import (
    AxisChain,
    Candidate,
    DimensionExplanation,
    MissingAxis,
    Move,
    Origin,
    WhyNot,
)
from shardy_py.explain.record.chains import Chain, Link, find_chains
from shardy_py.explain.record.labels import Labels
from shardy_py.explain.record.missing import find_missing
from shardy_py.explain.record.reason import Reason, Spot
from shardy_py.explain.record.reasons import MEANINGS, Code
from shardy_py.explain.record.trace import Trace
from shardy_py.ir.types import static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import factor_symbol


class Describer:
    """Explains dimensions of tensors in the names of some labels.

    Args:
        trace: The trace.
        labels: The names.
    """

    def __init__(self, trace: Trace, labels: Labels) -> None:
        self.trace = trace
        self.labels = labels

    def dimension(self, slot: int, dimension: int, mesh: Mesh) -> DimensionExplanation:
        """Explain one dimension of a tensor."""
        sharding = self.trace.history.last(slot)
        dim = None if sharding is None else sharding.of_dimension(dimension)
        shape = static_shape(self.trace.problem.slot_values[slot].type)
        present = [chain for axis in (dim.axes if dim else ()) for chain in self.chains((slot, dimension), axis)]
        missing = [
            MissingAxis(str(axis), tuple([self.reason(reason) for reason in reasons]))
            for axis, reasons in find_missing(self.trace, slot, dimension, mesh)
        ]
        return DimensionExplanation(
            dimension,
            -1 if shape is None else shape[dimension],
            "" if dim is None else str(dim),
            tuple(present),
            tuple(missing),
        )

    def chains(self, spot: Spot, axis: AxisRef, time: int | None = None) -> tuple[AxisChain, ...]:
        """Explain how an axis got onto a dimension."""
        return tuple([self._chain(chain) for chain in find_chains(self.trace, *spot, axis, time)])

    def _chain(self, chain: Chain) -> AxisChain:
        origin = Origin(
            self.labels.value(chain.slot),
            chain.dimension,
            chain.annotation.text,
            chain.annotation.kind,
            str(chain.annotation.sharding),
            chain.priority,
        )
        return AxisChain(str(chain.axis), tuple([self.move(link) for link in chain.links]), origin)

    def move(self, link: Link) -> Move:
        """Explain one move."""
        visit = self.trace.log.visits[link.visit]
        op = self.labels.of_step[visit.step]
        return Move(
            self.labels.value(link.slot),
            link.dimension,
            self.labels.value(link.source),
            link.source_dimension,
            str(link.axis),
            str(op),
            op.location,
            factor_symbol(link.factor) if link.factor >= 0 else "",
            link.direction,
            link.place.user_priority,
            link.place.level,
            self._level_name(link.place.level),
            link.place.strategy.value,
        )

    def _level_name(self, level: int) -> str:
        return self.trace.schedule.levels[level].name if self.trace.schedule is not None else ""

    def reason(self, reason: Reason) -> WhyNot:
        """Explain one reason."""
        place, op = reason.place, None if reason.step is None else self.labels.of_step[reason.step]
        time = 2 * reason.visit + 1 if reason.visit >= 0 else None
        slot, dimension = reason.spot
        return WhyNot(
            reason.code.value,
            str(reason.axis),
            self._sentence(reason),
            self.labels.value(slot),
            dimension,
            reason.distance,
            str(op or ""),
            op.location if op else "",
            factor_symbol(reason.factor) if reason.factor >= 0 else "",
            self._candidate(reason.source, (reason.axis,), time),
            self._candidate(reason.obstacle, reason.by, time),
            place.user_priority if place else -1,
            place.level if place else -1,
            place.strategy.value if place else "",
            tuple([f"{code.value} at level {level}" for level, code in reason.earlier]),
            reason.detail,
            tuple([Candidate(self.labels.value(rival), at, (str(reason.axis),)) for rival, at in reason.rivals]),
        )

    def _candidate(self, spot: Spot | None, axes: tuple[AxisRef, ...], time: int | None) -> Candidate | None:
        if spot is None:
            return None
        origins = [chain.annotation.text for axis in axes for chain in self._chains_of_part(spot, axis, time)]
        name = self.labels.value(spot[0])
        return Candidate(name, spot[1], tuple(map(str, axes)), tuple(dict.fromkeys(origins)))

    def _chains_of_part(self, spot: Spot, axis: AxisRef, time: int | None) -> list[Chain]:
        """Return the chains of what a dimension has of an axis; of what it got in the visit itself, too."""
        history = self.trace.history
        sharding = history.last(spot[0]) if time is None else history.sharding(history.before(spot[0], time + 1))
        if sharding is None:
            return []
        mesh = self.trace.problem.table.mesh_of(sharding)
        present = sharding.of_dimension(spot[1]).axes
        parts = axis_set_difference((axis,), axis_set_difference((axis,), present, mesh), mesh)
        end = None if time is None else time + 1
        return [chain for part in parts for chain in find_chains(self.trace, *spot, part, end)]

    def _sentence(self, reason: Reason) -> str:
        """Return what a reason says about its tensors."""
        name, dimension = self.labels.value(reason.spot[0]), reason.spot[1]
        by = ", ".join(map(str, reason.by))
        obstacle = reason.obstacle
        other = f"{self.labels.value(obstacle[0])} dim {obstacle[1]}" if obstacle else name
        detail = f" ({reason.detail})" if reason.detail else ""
        match reason.code:
            case Code.CONFLICT:
                return f"{other} has {by} there, and neither list of axes begins with the other"
            case Code.LOST:
                rivals = [f"{self.labels.value(slot)} dim {at}" for slot, at in reason.rivals]
                others = f"; without that, {', then '.join(rivals)} would have brought it there" if rivals else ""
                return f"dim {obstacle[1] if obstacle else '?'} of {name} took it in the same step{detail}{others}"
            case Code.OVERLAP:
                return f"{other} has {by} already"
            case Code.CLOSED:
                return f"{self._closed(reason)} is closed{self._annotated(self._stopper(reason))}"
            case Code.REPLICATED | Code.UNREDUCED:
                slot = self._stopper(reason)
                what = "explicitly replicated" if reason.code is Code.REPLICATED else "unreduced"
                return f"{self.labels.value(slot)} has {by} {what}{self._annotated(slot)}"
            case Code.DIRECTION if self._is_barrier(reason):
                return f"the propagation barrier lets shardings through {reason.detail.removesuffix(' at this level')}"
            case Code.PRIORITY if not reason.by:
                return f"{self._closed(reason)} is {reason.detail}"
            case Code.PRIORITY:
                return f"{other} had {by} already{detail}"
            case Code.GROUP:
                return f"the sharding group does not pass it on to {name}"
            case Code.NO_DIMENSION:
                return f"the factor is no dimension of {name}"
            case Code.NO_RULE:
                return f"{reason.detail} has no sharding rule"
            case Code.NOT_OFFERED:
                return f"no tensor that corresponds to {name} dim {dimension} has it"
        return f"{MEANINGS[reason.code]}{detail}"

    def _is_barrier(self, reason: Reason) -> bool:
        problem, step = self.trace.problem, reason.step
        return step is not None and step >= 0 and problem.groups[problem.step_groups[step]].fixed is not None

    def _stopper(self, reason: Reason) -> int:
        return reason.obstacle[0] if reason.obstacle else reason.spot[0]

    def _closed(self, reason: Reason) -> str:
        slot, dimension = reason.obstacle or reason.spot
        return f"{self.labels.value(slot)} dim {dimension}"

    def _annotated(self, slot: int) -> str:
        annotation = self.trace.annotations.get(slot)
        return f", as the {annotation.text} is annotated" if annotation else ""
