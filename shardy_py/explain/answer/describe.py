"""Chains and refusals over slots, turned into explanations by names."""

from __future__ import annotations

from shardy_py.explain.answer.explanations import DimensionExplanation
from shardy_py.explain.answer.moves import AxisMove, CandidateDimension, Chain, MissingAxis, Origin, Refusal
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import factor_symbol
from shardy_py.trace.chains import SlotChain, find_chains
from shardy_py.trace.labels import Labels
from shardy_py.trace.missing_axes import find_missing
from shardy_py.trace.reasons import MEANINGS, Reason
from shardy_py.trace.slot_moves import SlotMove
from shardy_py.trace.slots import SlotDim, SlotRefusal
from shardy_py.trace.trace import Trace


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
            MissingAxis(str(axis), tuple([self.refusal(slot_refusal) for slot_refusal in refusals]))
            for axis, refusals in find_missing(self.trace, slot, dimension, mesh)
        ]
        return DimensionExplanation(
            dimension,
            -1 if shape is None else shape[dimension],
            "" if dim is None else str(dim),
            tuple(present),
            tuple(missing),
        )

    def chains(self, slot_dim: SlotDim, axis: AxisRef, time: int | None = None) -> tuple[Chain, ...]:
        """Return the chains of an axis of a dimension."""
        return tuple([self._chain(chain) for chain in find_chains(self.trace, *slot_dim, axis, time)])

    def _chain(self, chain: SlotChain) -> Chain:
        origin = Origin(
            self.labels.value(chain.slot),
            chain.dimension,
            chain.annotation.text,
            chain.annotation.kind,
            str(chain.annotation.sharding),
            chain.priority,
        )
        return Chain(str(chain.axis), tuple([self.move(move) for move in chain.moves]), origin)

    def move(self, move: SlotMove) -> AxisMove:
        """Return a move by names."""
        op = self.labels.of_step[move.step]
        return AxisMove(
            self.labels.value(move.slot),
            move.dimension,
            self.labels.value(move.source),
            move.source_dimension,
            str(move.axis),
            str(op),
            op.location,
            factor_symbol(move.factor) if move.factor >= 0 else "",
            move.direction,
            move.place.user_priority,
            move.place.level,
            self._level_name(move.place.level),
            move.place.strategy.value,
        )

    def _level_name(self, level: int) -> str:
        return self.trace.schedule.levels[level].name if self.trace.schedule is not None else ""

    def refusal(self, slot_refusal: SlotRefusal) -> Refusal:
        """Return a refusal by names."""
        place, op = slot_refusal.place, None if slot_refusal.step is None else self.labels.of_step[slot_refusal.step]
        time = 2 * slot_refusal.visit + 1 if slot_refusal.visit >= 0 else None
        slot, dimension = slot_refusal.slot_dim
        return Refusal(
            slot_refusal.reason.value,
            str(slot_refusal.axis),
            self._sentence(slot_refusal),
            self.labels.value(slot),
            dimension,
            slot_refusal.distance,
            str(op or ""),
            op.location if op else "",
            factor_symbol(slot_refusal.factor) if slot_refusal.factor >= 0 else "",
            self._candidate(slot_refusal.source, (slot_refusal.axis,), time),
            self._candidate(slot_refusal.obstacle, slot_refusal.by, time),
            place.user_priority if place else -1,
            place.level if place else -1,
            place.strategy.value if place else "",
            tuple([f"{reason.value} at level {level}" for level, reason in slot_refusal.earlier]),
            slot_refusal.detail,
            tuple(
                [
                    CandidateDimension(self.labels.value(rival), at, (str(slot_refusal.axis),))
                    for rival, at in slot_refusal.rivals
                ]
            ),
        )

    def _candidate(
        self, slot_dim: SlotDim | None, axes: tuple[AxisRef, ...], time: int | None
    ) -> CandidateDimension | None:
        if slot_dim is None:
            return None
        origins = [chain.annotation.text for axis in axes for chain in self._chains_of_part(slot_dim, axis, time)]
        name = self.labels.value(slot_dim[0])
        return CandidateDimension(name, slot_dim[1], tuple(map(str, axes)), tuple(dict.fromkeys(origins)))

    def _chains_of_part(self, slot_dim: SlotDim, axis: AxisRef, time: int | None) -> list[SlotChain]:
        """Return the chains of the parts of an axis that a dimension has, or got in the visit itself."""
        history = self.trace.history
        sharding = history.last(slot_dim[0])
        if time is not None:
            sharding = history.sharding(history.before(slot_dim[0], time + 1))
        if sharding is None:
            return []
        mesh = self.trace.problem.table.mesh_of(sharding)
        present = sharding.of_dimension(slot_dim[1]).axes
        parts = axis_set_difference((axis,), axis_set_difference((axis,), present, mesh), mesh)
        end = None if time is None else time + 1
        return [chain for part in parts for chain in find_chains(self.trace, *slot_dim, part, end)]

    def _sentence(self, slot_refusal: SlotRefusal) -> str:
        """Return the reason of a refusal as a sentence about its tensors."""
        name, dimension = self.labels.value(slot_refusal.slot_dim[0]), slot_refusal.slot_dim[1]
        by = ", ".join(map(str, slot_refusal.by))
        obstacle = slot_refusal.obstacle
        other = f"{self.labels.value(obstacle[0])} dim {obstacle[1]}" if obstacle else name
        detail = f" ({slot_refusal.detail})" if slot_refusal.detail else ""
        match slot_refusal.reason:
            case Reason.CONFLICT:
                return f"{other} has {by} there, and neither list of axes begins with the other"
            case Reason.LOST:
                rivals = [f"{self.labels.value(slot)} dim {at}" for slot, at in slot_refusal.rivals]
                others = f"; without that, {', then '.join(rivals)} would have brought it there" if rivals else ""
                return f"dim {obstacle[1] if obstacle else '?'} of {name} took it in the same step{detail}{others}"
            case Reason.OVERLAP:
                return f"{other} has {by} already"
            case Reason.CLOSED:
                return f"{self._closed(slot_refusal)} is closed{self._annotated(self._stopper(slot_refusal))}"
            case Reason.REPLICATED | Reason.UNREDUCED:
                slot = self._stopper(slot_refusal)
                state = "explicitly replicated" if slot_refusal.reason is Reason.REPLICATED else "unreduced"
                return f"{self.labels.value(slot)} has {by} {state}{self._annotated(slot)}"
            case Reason.DIRECTION if self._is_barrier(slot_refusal):
                direction = slot_refusal.detail.removesuffix(" at this level")
                return f"the propagation barrier lets shardings through {direction}"
            case Reason.PRIORITY if not slot_refusal.by:
                return f"{self._closed(slot_refusal)} is {slot_refusal.detail}"
            case Reason.PRIORITY:
                return f"{other} had {by} already{detail}"
            case Reason.GROUP:
                return f"the sharding group does not pass it on to {name}"
            case Reason.NO_DIMENSION:
                return f"the factor is not a dimension of {name}"
            case Reason.NO_RULE:
                return f"{slot_refusal.detail} has no sharding rule"
            case Reason.NOT_OFFERED:
                return f"no tensor that corresponds to {name} dim {dimension} has it"
        return f"{MEANINGS[slot_refusal.reason]}{detail}"

    def _is_barrier(self, slot_refusal: SlotRefusal) -> bool:
        problem, step = self.trace.problem, slot_refusal.step
        return step is not None and step >= 0 and problem.groups[problem.step_groups[step]].fixed is not None

    def _stopper(self, slot_refusal: SlotRefusal) -> int:
        return slot_refusal.obstacle[0] if slot_refusal.obstacle else slot_refusal.slot_dim[0]

    def _closed(self, slot_refusal: SlotRefusal) -> str:
        slot, dimension = slot_refusal.obstacle or slot_refusal.slot_dim
        return f"{self.labels.value(slot)} dim {dimension}"

    def _annotated(self, slot: int) -> str:
        annotation = self.trace.annotations.get(slot)
        return f", as the {annotation.text} is annotated" if annotation else ""
