"""Explanation of a communication: the axes behind it, and trials of annotations that would remove it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from shardy_py.cost.communications import Communication, list_communications
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.answer.describe import Describer
from shardy_py.explain.answer.moves import Chain, Refusal
from shardy_py.explain.reshard_proposals import Proposal, Trial, TrialRunner, by_use, propose
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import any_overlap, axis_set_difference
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.chains import find_chains
from shardy_py.trace.labels import EDGE_SUFFIX, at_place
from shardy_py.trace.missing_axes import RefusalSearch
from shardy_py.trace.recording import Recording
from shardy_py.trace.slots import SlotDim, SlotRefusal, axes_of
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen

TrialCallback = Callable[[int, int], None]
"""Receiver of the number of trials that are done, and of how many there are."""


@frozen
class CommunicationLine:
    """One communication, in names.

    Args:
        number: Its number.
        kind: ``sdy.reshard``, ``sdy.all_reduce`` and so on.
        value: The tensor that is moved.
        before: Its sharding before.
        after: Its sharding behind.
        where: Its purpose.
        location: The place in the source of the op that it is for, or "".
        combiner: The function by which an all-reduce combines, as Shardy writes it; "" for a sum.
        changes: What communication passes of the local program change at the op that it is for, with the bytes.
    """

    number: int
    kind: str
    value: str
    before: str
    after: str
    where: str
    location: str = ""
    combiner: str = ""
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        kind = f"{self.kind} {self.combiner}".rstrip()
        moved = f"{self.value} {self.before} -> {self.after}"
        return f"{self.number}: {kind} of {moved}: {self.where}{at_place(self.location)}"


@frozen
class MovedDimension:
    """A dimension whose axes a communication changes.

    Args:
        dimension: The number of the dimension.
        gone: The chains of the axes that it loses.
        stopped: The refusals of these axes by the other tensors of the op.
        come: The axes that it gets.
        wanted: The chains of these, onto the tensor while shardings propagated, or onto the other tensors of the op.
        reasons: The refusals of these by the tensor itself.
        rivals: The chains of the axes that it loses or gets onto other factors of the op.
    """

    dimension: int
    gone: tuple[Chain, ...]
    stopped: tuple[Refusal, ...]
    come: tuple[str, ...]
    wanted: tuple[Chain, ...]
    reasons: tuple[Refusal, ...]
    rivals: tuple[Chain, ...]


@frozen
class ReshardExplanation:
    """Explanation of a communication.

    Args:
        communication: The communication.
        differences: The dimensions that are moved.
        reduced: The chains of the axes over which the op reduces, onto its operands.
        trials: Other annotations with their effect, the most useful first.
        combiners: The words of the combiners by which the op reduces (see `Combiner`).
    """

    communication: CommunicationLine
    differences: tuple[MovedDimension, ...]
    reduced: tuple[Chain, ...]
    trials: tuple[Trial, ...]
    combiners: tuple[str, ...] = ()


class ReshardExplainer:
    """Explains the communication of one program.

    Args:
        module: The program; the other arguments are those of `Session.open`.
        mesh: For a module without a mesh.
        schedule: The schedule.

    Attributes:
        changes: What communication passes change in the local program, where that is known; explanations report it.
    """

    changes: Sequence[CommunicationChange] = ()

    def __init__(self, module: Any, mesh: Any = None, *, schedule: ScheduleLike | None = None, **options: Any) -> None:
        recordings: list[Recording] = []

        def take_down(program: Program, main: Op) -> None:
            recordings.append(Recording(program, main))

        self.session = Session.open(module, mesh, on_given=take_down, **options)
        self.schedule = schedule
        recording = recordings[0]
        self.solution = self.session.solve(schedule, log=recording.log)
        levels = self.session.schedule(schedule)
        self.trace: Trace = recording.finish(
            self.session.program, self.solution, levels, self.session.copies, self.session.registry
        )
        self.labels = self.trace.labels
        self.communications = list_communications(self.session, self.solution, self.labels)

    def __repr__(self) -> str:
        return f"<ReshardExplainer of {len(self.communications)} communications>"

    def lines(self) -> list[CommunicationLine]:
        """Return all communication, in program order."""
        return [self._line(communication) for communication in self.communications]

    def change_lines(self) -> list[str]:
        """Return what communication passes change, each with the numbers of the communications that it concerns."""
        return [f"{change}{self._numbers(change)}" for change in self.changes]

    def _numbers(self, change: CommunicationChange) -> str:
        """Return the numbers of the communications that a change concerns, in brackets."""
        numbers = [str(item.number) for item in self.communications if self._is_changed(item, change)]
        return f" ({', '.join(numbers)})" if numbers else ""

    def _is_changed(self, communication: Communication, change: CommunicationChange) -> bool:
        """Return whether a change is at the op that a communication is for, or at one that takes the result."""
        users = (self._locations.get(op, "") for op, _ in communication.final_uses)
        return any(location in change.locations for location in (communication.location, *users) if location)

    @cached_property
    def _locations(self) -> dict[int, str]:
        return {op.id: op.location for op in self.session.program.walk()}

    def explain(self, number: int, *, limit: int = 12, on_trial: TrialCallback | None = None) -> ReshardExplanation:
        """Explain one communication.

        Args:
            number: Its number.
            limit: The most proposals to try.
            on_trial: Called before the first trial and after each one with how many are done, and of how many.

        Raises:
            OptionError: there is none of that number.
        """
        if not 0 <= number < len(self.communications):
            count = len(self.communications)
            hint = f"the numbers are 0 to {count - 1}" if count else "the program needs none"
            raise OptionError(Diagnostic("unknown-reshard", f"there is no reshard {number}", hint=hint))
        communication = self.communications[number]
        survey = _Survey(self.trace, communication, self.session)
        differences, reduced = tuple(survey.differences()), tuple(survey.reduced())
        runner = TrialRunner(self.session, self.solution, self.communications, self.labels, self.schedule)
        slot_dims = dict.fromkeys(survey.slot_dims)
        target = communication.after if differences else None
        proposals = propose(self.trace.annotations, slot_dims, self.labels, moved=communication.slot, target=target)
        trials = _tried(runner, communication, list(islice(proposals, limit)), on_trial)
        combiners = tuple(survey.combiners()) if reduced else ()
        return ReshardExplanation(
            self._line(communication), differences, reduced, tuple(sorted(trials, key=by_use)), combiners
        )

    def _line(self, communication: Communication) -> CommunicationLine:
        return CommunicationLine(
            communication.number,
            communication.kind,
            self.labels.value(communication.slot),
            _dims(communication.before),
            _dims(communication.after),
            communication.where,
            communication.location,
            communication.combiner,
            tuple(str(change) for change in self.changes if self._is_changed(communication, change)),
        )


def _tried(
    runner: TrialRunner, communication: Communication, proposals: Sequence[Proposal], on_trial: TrialCallback | None
) -> Iterator[Trial]:
    """Yield the trials of proposals."""
    for done, item in enumerate(proposals):
        if on_trial is not None:
            on_trial(done, len(proposals))
        yield runner.try_out(item, communication)
    if on_trial is not None:
        on_trial(len(proposals), len(proposals))


def _dims(sharding: TensorSharding | None) -> str:
    return "no sharding" if sharding is None else str(sharding)


class _Survey:
    """Search for the chains and refusals behind a communication, and for the annotations behind these."""

    def __init__(self, trace: Trace, communication: Communication, session: Session) -> None:
        self.trace, self.communication = trace, communication
        self.describer = Describer(trace, trace.labels)
        self.search = RefusalSearch(trace)
        self.slot_dims: list[SlotDim] = []
        self.steps = list(self._steps(session.problem.step_ops))

    def _steps(self, ops: Sequence[Op]) -> Iterator[int]:
        """Yield the steps of the op that makes the tensor and of those that take it."""
        users = {user for user, _ in self.communication.users}
        op_ids = {op.id for op in ops}
        for step, _ in self.trace.steps_at.get(self.communication.slot, ()):
            is_maker = self.communication.slot in self.trace.labels.results.get(step, ())
            # A return and what flows into a region or out of it have steps of their own: results and edges.
            is_flow = step < 0 or self.trace.labels.of_step[step].name.endswith(EDGE_SUFFIX)
            if is_maker or (is_flow and not users <= op_ids) or (step >= 0 and ops[step].id in users):
                yield step

    def differences(self) -> Iterator[MovedDimension]:
        """Yield the dimensions whose axes change."""
        sharding = self.trace.history.last(self.communication.slot) if self.communication.slot >= 0 else None
        before, after = self.communication.before, self.communication.after
        if after is None:
            return
        mesh = self.trace.problem.table.mesh_of(after)
        for dimension, dim in enumerate(after.dim_shardings):
            had = before.of_dimension(dimension).axes if before else ()
            axes = sharding.of_dimension(dimension).axes if sharding and dimension < sharding.rank else ()
            if had == dim.axes:
                continue
            lost = _within(axis_set_difference(had, dim.axes, mesh), axes)
            come = axis_set_difference(dim.axes, had, mesh)
            yield MovedDimension(
                dimension,
                tuple(self._chains((self.communication.slot, dimension), lost)),
                tuple(self._stopped(dimension, lost)),
                tuple(map(str, come)),
                (
                    *self._chains((self.communication.slot, dimension), _within(come, axes)),
                    *self._chains_at_op(dimension, come),
                ),
                tuple(self._reasons(dimension, _without(come, axes))),
                tuple(self._rivals(dimension, (*lost, *come))),
            )

    def reduced(self) -> Iterator[Chain]:
        """Yield the chains of the axes of reduction factors onto the operands of the op that makes the tensor."""
        if self.communication.kind == RESHARD:
            return
        for step in self.steps:
            slots, index = self.trace.slots_and_index(step)
            if index is None or step < 0 or self.communication.slot not in self.trace.labels.results.get(step, ()):
                continue
            for slot, mapping in zip(slots, index.mappings, strict=True):
                for dimension, factors in enumerate(mapping):
                    if slot >= 0 and set(factors).intersection(index.rule.reduction_factors):
                        yield from self._chains((slot, dimension), self._axes(slot, dimension))

    def combiners(self) -> list[str]:
        """Return the words of the combiners of the op that makes the tensor, each once."""
        steps = [step for step in self.steps if self.communication.slot in self.trace.labels.results.get(step, ())]
        return sorted({word for step in steps for word in self.trace.reductions.get(step, {}).values()})

    def _chains(self, slot_dim: SlotDim, axes: Iterable[AxisRef]) -> Iterator[Chain]:
        for axis in axes:
            for chain in find_chains(self.trace, *slot_dim, axis):
                self.slot_dims.append((chain.slot, chain.dimension))
                ways = ((move.slot, move.dimension) for move in chain.moves)
                self.slot_dims.extend(slot_dim for slot_dim in ways if slot_dim[0] in self.trace.annotations)
            yield from self.describer.chains(slot_dim, axis)

    def _stopped(self, dimension: int, axes: tuple[AxisRef, ...]) -> Iterator[Refusal]:
        """Yield the refusals of axes of the tensor by the other tensors of the op."""
        for step in self.steps:
            for refusal in self.search.refusals_from((self.communication.slot, dimension), step):
                if any_overlap((refusal.axis,), axes):
                    self.slot_dims.extend(self._annotated(refusal))
                    yield self.describer.refusal(refusal)

    def _chains_at_op(self, dimension: int, axes: tuple[AxisRef, ...]) -> Iterator[Chain]:
        """Yield the chains of axes onto the other tensors of the op along the factors of the dimension."""
        for slot_dim in self._slot_dims_of_ops(dimension, same=True):
            yield from self._chains(slot_dim, _within(axes, self._axes(*slot_dim)))

    def _rivals(self, dimension: int, axes: tuple[AxisRef, ...]) -> Iterator[Chain]:
        """Yield the chains of axes onto the tensors of the op along other factors than those of the dimension."""
        for slot_dim in self._slot_dims_of_ops(dimension, same=False):
            present = self._axes(*slot_dim)
            yield from self._chains(slot_dim, tuple(axis for axis in present if any_overlap((axis,), axes)))

    def _slot_dims_of_ops(self, dimension: int, *, same: bool) -> Iterator[SlotDim]:
        """Yield the dimensions at the op that share a factor with the dimension, or those that share none."""
        for step in self.steps:
            slots, index = self.trace.slots_and_index(step)
            tensors = list(zip(slots, index.mappings if index else (), strict=True))
            factors = {
                factor
                for slot, mapping in tensors
                if slot == self.communication.slot and dimension < len(mapping)
                for factor in mapping[dimension]
            }
            for slot, mapping in tensors:
                for other, dim_factors in enumerate(mapping):
                    is_same = bool(factors.intersection(dim_factors))
                    if slot >= 0 and is_same is same and not (same and slot == self.communication.slot):
                        yield slot, other

    def _axes(self, slot: int, dimension: int) -> tuple[AxisRef, ...]:
        return axes_of(self.trace.history.last(slot), dimension)

    def _reasons(self, dimension: int, axes: Iterable[AxisRef]) -> Iterator[Refusal]:
        if self.communication.slot < 0:
            return
        for axis in axes:
            for refusal in self.search.refusals((self.communication.slot, dimension), axis):
                self.slot_dims.extend(self._annotated(refusal))
                yield self.describer.refusal(refusal)

    def _annotated(self, refusal: SlotRefusal) -> Iterator[SlotDim]:
        """Yield the annotated dimensions behind a refusal."""
        for slot_dim, axes in (
            (refusal.obstacle, refusal.by),
            (refusal.source, (refusal.axis,)),
            (refusal.slot_dim, ()),
        ):
            if slot_dim is None:
                continue
            if slot_dim[0] in self.trace.annotations:
                yield slot_dim
            for axis in _within(axes, self._axes(*slot_dim)):
                yield from ((chain.slot, chain.dimension) for chain in find_chains(self.trace, *slot_dim, axis))


def _within(axes: Iterable[AxisRef], others: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
    """Return those axes that lie inside others."""
    return tuple(axis for axis in axes if any(other.contains(axis) for other in others))


def _without(axes: Iterable[AxisRef], others: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
    return tuple(axis for axis in axes if not any_overlap((axis,), others))
