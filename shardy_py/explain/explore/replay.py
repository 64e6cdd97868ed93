"""Replay of a run for a page: its updates with what they changed, its moves, its refusals and its annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardy_py.explain.explore.tables import Columns, DistinctShardings, Interned, axis_data
from shardy_py.propagation.trace import op_of_visit, slots_of_visit
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import factor_symbol
from shardy_py.trace.labels import EDGE_SUFFIX
from shardy_py.trace.reasons import MEANINGS
from shardy_py.trace.slots import SlotDim, SlotRefusal
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen


@frozen(eq=False)
class Replay:
    """The replay of one traced run.

    Args:
        trace: The trace.
        tables: Shardings and types.
        strings: The texts.
        row_of: Op id to the row of the op.
        shown: Whether a page shows a slot.
    """

    trace: Trace
    tables: DistinctShardings
    strings: Interned[str]
    row_of: dict[int, int]
    shown: Callable[[int], bool]

    def to_json(self) -> dict[str, Any]:
        """Return the replay as plain lists and dictionaries."""
        levels = self.trace.schedule.levels if self.trace.schedule is not None else ()
        return {
            "levels": [level.name for level in levels],
            "start": self._start(),
            **self._updates(),
            "refusals": self._refusals().to_json(),
            "annotations": self._annotations().to_json(),
        }

    def _start(self) -> list[int]:
        """Return the sharding of each slot before anything propagates."""
        history = self.trace.history
        return [self.tables.number(history.sharding(moments[0])) for moments in history.moments]

    def _updates(self) -> dict[str, Any]:
        """Return the updates, the changes of each, and the moves of each."""
        updates = Columns.of("op", "label", "level", "priority", "strategy", "changes")
        moves = Columns.of("update", "slot", "dim", "source", "sourceDim", "axis", "factor", "direction")
        changes = self._changes()
        for number, update in self.trace.history.updates:
            step = self.trace.log.visits[number].step
            row = updates.add(
                op=self._row(step),
                label=self.strings(str(self.trace.labels.of_step[step])),
                level=update.level,
                priority=update.user_priority,
                strategy=self.strings(update.strategy.value),
                changes=changes.get(number, []),
            )
            for move in self.trace.moves_of_update(number, update):
                moves.add(
                    update=row,
                    slot=move.slot,
                    dim=move.dimension,
                    source=move.source,
                    sourceDim=move.source_dimension,
                    axis=self._axis(move.axis, move.slot),
                    factor=self.strings(factor_symbol(move.factor) if move.factor >= 0 else ""),
                    direction=self.strings(move.direction),
                )
        return {"updates": updates.to_json(), "moves": moves.to_json()}

    def _changes(self) -> dict[int, list[int]]:
        """Return, for each visit, the slots that changed with their new shardings, one behind the other."""
        history = self.trace.history
        changes: dict[int, list[int]] = {}
        for slot, moments in enumerate(history.moments):
            for moment in moments[1:]:
                changes.setdefault(moment.visit, []).extend((slot, self.tables.number(history.sharding(moment))))
        return changes

    def _refusals(self) -> Columns:
        """Return the refusals of the end, each once."""
        columns = Columns.of(
            "reason", "slot", "dim", "axis", "op", "label", "source", "sourceDim", "obstacle", "obstacleDim", "by"
        )
        seen = set[tuple[Any, ...]]()
        for refusal in self._final_refusals():
            key = (
                refusal.reason,
                refusal.axis,
                refusal.slot_dim,
                refusal.step,
                refusal.source,
                refusal.obstacle,
                refusal.by,
            )
            if key in seen or not self.shown(refusal.slot_dim[0]):
                continue
            seen.add(key)
            columns.add(
                reason=self.strings(refusal.reason.value),
                slot=refusal.slot_dim[0],
                dim=refusal.slot_dim[1],
                axis=self._axis(refusal.axis, refusal.slot_dim[0]),
                op=-1 if refusal.step is None else self._row(refusal.step),
                label=self.strings("" if refusal.step is None else str(self.trace.labels.of_step[refusal.step])),
                **_end("source", refusal.source),
                **_end("obstacle", refusal.obstacle),
                by=[self._axis(axis, refusal.slot_dim[0]) for axis in refusal.by],
            )
        return columns

    def _final_refusals(self) -> list[SlotRefusal]:
        trace = self.trace
        refusals = []
        for step in range(trace.problem.num_steps):
            slots, index = trace.slots_and_index(step)
            if index is None:
                continue
            for number, refusal in trace.final_refusals(step):
                if index.slot_dim(slots, refusal.target, refusal.factor) is not None:
                    refusals.append(trace.slot_refusal(step, number, refusal))
        return refusals

    def _annotations(self) -> Columns:
        columns = Columns.of("slot", "kind", "text", "sharding", "owner")
        for slot, annotation in self.trace.annotations.items():
            columns.add(
                slot=slot,
                kind=self.strings(annotation.kind),
                text=self.strings(annotation.text),
                sharding=self.tables.number(annotation.sharding),
                owner=annotation.owner,
            )
        return columns

    def _row(self, step: int) -> int:
        """Return the row of the op of a step; for an edge, that of the op whose data flows; -1 for none."""
        op = op_of_visit(self.trace.problem, step)
        if self.trace.labels.of_step[step].name.endswith(EDGE_SUFFIX):
            slot = slots_of_visit(self.trace.problem, step)[-1]
            op = self.trace.problem.slot_values[slot].owning_op if slot >= 0 else op
        return self.row_of.get(op.id, -1)

    def _axis(self, axis: AxisRef, slot: int) -> int:
        """Return the number of the text of an axis with its parts: name, size of the parts before, own size."""
        sharding = self.trace.history.last(slot)
        mesh = None if sharding is None else self.tables.mesh(sharding)
        name, before, size = axis_data(axis, mesh)
        return self.strings(f"{name}\t{before}\t{size}")


def _end(name: str, slot_dim: SlotDim | None) -> dict[str, int]:
    slot, dim = (-1, -1) if slot_dim is None else slot_dim
    return {name: slot, f"{name}Dim": dim}


def reason_texts() -> dict[str, str]:
    """Return the meanings of the reasons of refusals."""
    return {reason.value: text for reason, text in MEANINGS.items()}
