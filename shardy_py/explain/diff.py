"""Difference of two schedules on one program: their first diverging decisions, and the tensors sharded differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shardy_py.cost.finishing import changed_slots
from shardy_py.cost.session import Session, session_labels
from shardy_py.cost.sweeps.named_schedules import NamedSchedule
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Value
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import TensorChange, Update
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import is_prefix
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import checked
from shardy_py.trace.labels import Labels, OpLabel, at_place
from shardy_py.values import frozen


@frozen
class Decision:
    """An update that gave a dimension of a tensor axes.

    Args:
        number: The number of the update in its run, from 1.
        op: The name of the op whose rule was applied.
        results: The names of its results.
        location: The place of the op in the source.
        value: The tensor.
        dim: The dimension.
        axes: The axes it has since then.
        level: The number of the op-priority level.
        level_name: Its name.
        user_priority: The user priority.
    """

    number: int
    op: str
    results: str
    location: str
    value: str
    dim: int
    axes: tuple[AxisRef, ...]
    level: int
    level_name: str
    user_priority: int

    def __str__(self) -> str:
        axes = ", ".join(map(str, self.axes))
        op = f"{self.op} {self.results}".rstrip()
        return (
            f"update {self.number}, level {self.level} ({self.level_name}), user priority {self.user_priority}: "
            f"{op}{at_place(self.location)} gives {self.value} {{{axes}}} in dimension {self.dim}"
        )


@frozen
class Divergence:
    """The first decision of a run that the other run does not end with.

    Args:
        run: The schedule of the run.
        decision: The decision.
        other: The schedule of the other run.
        other_decisions: The decisions of the other run about that tensor, in order.
        other_sharding: The final sharding of the tensor there.
    """

    run: str
    decision: Decision
    other: str
    other_decisions: tuple[Decision, ...]
    other_sharding: TensorSharding | None


@frozen
class ValueDiff:
    """A tensor that is sharded differently in the end.

    Args:
        value: The tensor.
        location: The place of the op that makes it, or "".
        type: Its type.
        first: Its sharding in the first run.
        second: Its sharding in the second.
    """

    value: str
    location: str
    type: str
    first: TensorSharding | None
    second: TensorSharding | None


@frozen
class ScheduleDiff:
    """Difference of the runs of two schedules.

    Args:
        first: The schedule of the first run.
        second: The schedule of the second run.
        divergences: The divergences, at most one per run, that of the first run first.
        values: The tensors that are sharded differently in the end; results of the main function come first.
        tensors: The number of tensors.
    """

    first: str
    second: str
    divergences: tuple[Divergence, ...]
    values: tuple[ValueDiff, ...]
    tensors: int

    @property
    def is_empty(self) -> bool:
        """True if both runs end alike."""
        return not self.values


@checked
def diff_schedules(session: Session, first: NamedSchedule, second: NamedSchedule) -> ScheduleDiff:
    """Compare the runs of two schedules on one program, decision by decision.

    The order of the decisions always differs between two schedules. What tells runs apart is the first decision of
    one that the other does not end with: axes of a dimension that the other run gave to nothing, to another dimension
    or to other axes first.

    Args:
        session: The program.
        first: A schedule.
        second: Another one.

    Raises:
        OptionError: the strategy of the session has no levels.
    """
    labels = session_labels(session)
    first_run, second_run = _Run.of(session, first), _Run.of(session, second)
    slots = changed_slots(first_run.solution, second_run.solution)
    values = tuple(
        ValueDiff(
            labels.value(slot),
            labels.location(slot),
            str(session.problem.slot_values[slot].type),
            first_run.sharding(slot),
            second_run.sharding(slot),
        )
        for slot in slots
    )
    by_run = (_divergence(first_run, second_run, labels), _divergence(second_run, first_run, labels))
    divergences = tuple(item for item in by_run if item is not None)
    return ScheduleDiff(first.name, second.name, divergences, values, len(session.problem.slot_values))


class _Place(NamedTuple):
    """A dimension that got axes."""

    number: int
    update: Update
    value: Value
    dim: int
    axes: tuple[AxisRef, ...]


@frozen(eq=False)
class _Run:
    """One solve with all its updates."""

    schedule: NamedSchedule
    solution: Solution
    updates: list[Update]
    steps: Mapping[int, int]

    @classmethod
    def of(cls, session: Session, schedule: NamedSchedule) -> _Run:
        updates: list[Update] = []
        solution = session.solve(schedule.schedule, observer=updates.append)
        steps = {op.id: step for step, op in enumerate(session.problem.step_ops)}
        return cls(schedule, solution, updates, steps)

    def label(self, update: Update, labels: Labels) -> OpLabel:
        """Return the name of the op of an update."""
        if update.is_function_result:
            return OpLabel(RETURN, location=update.op.location)
        return labels.of_step[self.steps[update.op.id]]

    def sharding(self, slot: int) -> TensorSharding | None:
        """Return the sharding of a slot in the end."""
        return self.solution.problem.table.values[self.solution.shardings[slot]]

    def places(self) -> Iterator[_Place]:
        """Yield every dimension that got axes, in order."""
        for number, update in enumerate(self.updates, start=1):
            for change in update.changes:
                for dim, axes in _new_axes(change):
                    yield _Place(number, update, change.value, dim, axes)


def _divergence(run: _Run, other: _Run, labels: Labels) -> Divergence | None:
    """Return the first decision of a run that another one does not end with."""
    for place in run.places():
        final = other.sharding(other.solution.problem.slot_of[place.value.id])
        ends_with = final.of_dimension(place.dim).axes if final is not None else ()
        if is_prefix(place.axes, ends_with):
            continue
        theirs = tuple(_decision(other, item, labels) for item in other.places() if item.value is place.value)
        return Divergence(run.schedule.name, _decision(run, place, labels), other.schedule.name, theirs, final)
    return None


def _decision(run: _Run, place: _Place, labels: Labels) -> Decision:
    update = place.update
    label = run.label(update, labels)
    return Decision(
        place.number,
        label.name,
        label.results,
        label.location,
        labels.value(run.solution.problem.slot_of[place.value.id]),
        place.dim,
        place.axes,
        update.level,
        run.schedule.schedule.levels[update.level].name,
        update.user_priority,
    )


def _new_axes(change: TensorChange) -> Iterator[tuple[int, tuple[AxisRef, ...]]]:
    """Yield the dimensions that a change gave axes, with all their axes."""
    for dim, sharding in enumerate(change.new.dim_shardings):
        before = change.old.of_dimension(dim).axes if change.old is not None else ()
        if sharding.axes != before:
            yield dim, sharding.axes
