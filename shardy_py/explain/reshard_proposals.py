"""Proposals of other annotations, each tried by solving again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from shardy_py.cost.communications import Communication, count_by_kind, list_communications
from shardy_py.cost.finishing import changed_slots
from shardy_py.cost.session import Session
from shardy_py.errors import ShardyError
from shardy_py.propagation.solve import Solution
from shardy_py.schedule.from_options import ScheduleLike
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.trace.annotations import Annotation
from shardy_py.trace.labels import Labels
from shardy_py.trace.slots import SlotDim
from shardy_py.values import frozen


@frozen(eq=False)
class Proposal:
    """Another annotation.

    Args:
        kind: ``open``, ``close``, ``constrain``, ``priority`` or ``remove``.
        text: The change, readable.
        shardings: Slot to the sharding to start with.
    """

    kind: str
    text: str
    shardings: Mapping[int, TensorSharding | None]


@frozen
class Trial:
    """The effect of a proposal.

    Args:
        kind: The kind of the proposal.
        text: Its text.
        removes: Whether the communication in question is gone.
        before: The number of communications of each kind without the proposal.
        after: The number of each kind with it.
        values_changed: The number of tensors that are sharded differently.
        error: The error that it ends with, or "".
    """

    kind: str
    text: str
    removes: bool
    before: Mapping[str, int]
    after: Mapping[str, int]
    values_changed: int
    error: str = ""

    @property
    def total_before(self) -> int:
        """Number of communications without the proposal."""
        return sum(self.before.values())

    @property
    def total_after(self) -> int:
        """Number of communications with the proposal."""
        return sum(self.after.values())


def propose(
    annotations: Mapping[int, Annotation],
    slot_dims: Iterable[SlotDim],
    labels: Labels,
    *,
    moved: int,
    target: TensorSharding | None,
) -> Iterator[Proposal]:
    """Yield annotations that might make a communication go away, each once.

    Args:
        annotations: Slot to annotation.
        slot_dims: The annotated dimensions that have to do with it.
        labels: The names of values and ops.
        moved: The slot of the tensor that is moved.
        target: The sharding it is moved to.
    """
    seen: set[str] = set()
    for proposal in (*_constrain(annotations, labels, moved, target), *_at_slot_dims(annotations, slot_dims)):
        if proposal.text not in seen:
            seen.add(proposal.text)
            yield proposal


def _constrain(
    annotations: Mapping[int, Annotation], labels: Labels, moved: int, target: TensorSharding | None
) -> Iterator[Proposal]:
    if moved < 0 or target is None or (moved in annotations and annotations[moved].sharding.unreduced_axes):
        return
    closed = evolve(target.closed_like(), unreduced_axes=())
    dims = ", ".join(map(str, closed.dim_shardings))
    yield Proposal("constrain", f"constrain {labels.value(moved)} to [{dims}]", {moved: closed})


def _at_slot_dims(annotations: Mapping[int, Annotation], slot_dims: Iterable[SlotDim]) -> Iterator[Proposal]:
    for slot, dimension in slot_dims:
        annotation = annotations.get(slot)
        if annotation is None or dimension >= annotation.sharding.rank:
            continue
        dim = annotation.sharding.of_dimension(dimension)
        where = f"dimension {dimension} of the {annotation.text}"
        for kind, action, new in _variants(dim):
            owner = slot if annotation.owner < 0 else annotation.owner
            slots = [
                annotated
                for annotated, other in annotations.items()
                if annotated in (slot, owner) or other.owner == owner
            ]
            shardings = {annotated: _with_dim(annotations[annotated].sharding, dimension, new) for annotated in slots}
            yield Proposal(kind, f"{action} {where}", shardings)


def _variants(dim: DimensionSharding) -> Iterator[tuple[str, str, DimensionSharding]]:
    """Yield other annotations of a dimension."""
    axes = ", ".join(map(str, dim.axes))
    if dim.is_closed:
        yield "open", "open", evolve(dim, is_closed=False)
    if dim.axes and dim.priority_or_default == 0:
        yield "priority", "give user priority 1 to", evolve(dim, priority=1)
    if dim.axes and dim.priority_or_default > 0:
        yield "priority", "give user priority 0 to", evolve(dim, priority=None)
    if dim.axes:
        yield "remove", f"leave {axes} off", DimensionSharding((), is_closed=False)
    if not dim.is_closed:
        yield "close", "close", evolve(dim, is_closed=True)


def _with_dim(sharding: TensorSharding, dimension: int, dim: DimensionSharding) -> TensorSharding:
    dims = sharding.dim_shardings
    if dimension >= len(dims):
        return sharding
    return evolve(sharding, dim_shardings=(*dims[:dimension], dim, *dims[dimension + 1 :]))


@frozen(eq=False)
class TrialRunner:
    """Tries proposals on one program.

    Args:
        session: The session.
        solution: The solution without any proposal.
        communications: Its communication.
        labels: The names of values and ops.
        schedule: The schedule.
    """

    session: Session
    solution: Solution
    communications: list[Communication]
    labels: Labels
    schedule: ScheduleLike | None = None

    def try_out(self, proposal: Proposal, target: Communication) -> Trial:
        """Solve with a proposal and return its effect."""
        before = count_by_kind(self.communications)
        session = self.session.with_shardings(proposal.shardings)
        try:
            solution = session.solve(self.schedule)
            communications = list_communications(session, solution, self.labels)
        except ShardyError as error:
            return Trial(proposal.kind, proposal.text, False, before, {}, 0, str(error))
        changed = changed_slots(self.solution, evolve(solution, problem=self.solution.problem))
        removes = target.key not in {communication.key for communication in communications}
        return Trial(proposal.kind, proposal.text, removes, before, count_by_kind(communications), len(changed))


def by_use(trial: Trial) -> tuple[bool, int, int, str]:
    """Return the key that sorts trials: those that remove the communication first, then by what is left of it all."""
    return not trial.removes, trial.total_after, trial.values_changed, trial.text
