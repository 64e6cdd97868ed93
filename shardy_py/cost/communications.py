"""Communications of a solution: all reshards and collectives that the full explicit reshards need, numbered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from attrs import evolve

from shardy_py.api.summary import RESHARDS, sharding_of
from shardy_py.cost.estimates import Cost, Transfer
from shardy_py.cost.session import Evaluation, Session, session_labels
from shardy_py.ir.graph.op_names import CONSTRAINT, RESHARD, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution
from shardy_py.sharding.combiner import parse_reduction_op
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.labels import Labels
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.values import frozen

Uses = tuple[tuple[int, int], ...]
"""Uses of a value, each as the id of an op and the number of its operand."""


@frozen(eq=False)
class Communication:
    """One reshard or collective.

    Args:
        number: Its number, in program order.
        kind: ``sdy.reshard``, ``sdy.all_reduce`` and so on.
        slot: The slot of the tensor that is moved; -1 where propagation did not see it.
        before: Its sharding before.
        after: Its sharding behind.
        users: The ids of the ops that take the result, with the numbers of their operands.
        where: Its purpose, readable.
        location: The place in the source of the op that it is for, or "".
        combiner: The function by which it makes one of partial results, "" for none.
        final_uses: The ids of the ops that take the result behind all other communication, with the numbers of their
            operands.
    """

    number: int
    kind: str
    slot: int
    before: TensorSharding | None
    after: TensorSharding | None
    users: tuple[tuple[int, int], ...]
    where: str
    location: str = ""
    combiner: str = ""
    final_uses: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> tuple[str, int, tuple[tuple[int, int], ...]]:
        """Key of a communication, equal for the same one in two solutions of a program."""
        return self.kind, self.slot, self.users


def list_communications(session: Session, solution: Solution, labels: Labels) -> list[Communication]:
    """Return all communication of a solution.

    Args:
        session: The session.
        solution: One of its solutions.
        labels: The names of values and ops.
    """
    program = session.finish(solution, last_pass=InsertExplicitReshardsPass.name)
    return list(_Lister(session, solution, program, labels).run())


def count_by_kind(communications: Iterable[Communication]) -> dict[str, int]:
    """Return the number of communications of each kind."""
    return dict(sorted(Counter(communication.kind for communication in communications).items()))


def moved_slot(problem: Problem, value: Value, known: dict[int, int]) -> int:
    """Return the slot of a value before all communication; -1 where propagation did not see it.

    Args:
        problem: The problem.
        value: The value.
        known: Those of other values, by value id; more are added, as communication may be a long chain.
    """
    passed = [value.id]
    while value.id not in known and value.id not in problem.slot_of:
        if value.defining_op is None or value.defining_op.name not in RESHARDS:
            break
        value = value.defining_op.operands[0]
        passed.append(value.id)
    slot = known.get(value.id)
    if slot is None:
        slot = problem.slot_of.get(value.id, -1)
        if slot < 0 and value.defining_op is not None:
            # What is a call again was a named computation while shardings propagated.
            slot = problem.slot_of.get(value.defining_op.program.originals.get(value.id, -1), -1)
    known.update(dict.fromkeys(passed, slot))
    return slot


def final_uses(value: Value, known: dict[int, Uses]) -> Uses:
    """Return the uses of a value behind all communication, each as the id of an op and the number of its operand.

    Args:
        value: The value.
        known: Those of other values, by value id; more are added, as communication may be a long chain.
    """
    pending = [value]
    while pending:
        current = pending[-1]
        moved = {user.id: user.results[0] for user, _ in current.uses if user.name in RESHARDS and user.results}
        waiting = [result for result in moved.values() if result.id not in known]
        if current.id in known or not waiting:
            pending.pop()
            parts = [known[moved[user.id].id] if user.id in moved else ((user.id, at),) for user, at in current.uses]
            known.setdefault(current.id, tuple(chain.from_iterable(parts)))
        else:
            pending += waiting
    return known[value.id]


class _Lister:
    def __init__(self, session: Session, solution: Solution, program: Program, labels: Labels) -> None:
        self._session, self._solution, self._program, self._labels = session, solution, program, labels
        self._table = solution.problem.table.values
        self._steps: Mapping[int, int] = {op.id: step for step, op in enumerate(session.problem.step_ops)}
        self._constraints = _find_constraints(session)
        self._slots: dict[int, int] = {}
        self._uses: dict[int, Uses] = {}

    def run(self) -> Iterator[Communication]:
        number = 0
        for op in self._program.walk():
            if op.name in RESHARDS and op.operands and op.results:
                yield self._communication(op, number)
                number += 1

    def _communication(self, op: Op, number: int) -> Communication:
        source, result = op.operands[0], op.results[0]
        slot = self._slot(source)
        after = sharding_of(self._program, result, self._session.registry)
        return Communication(
            number,
            op.name,
            slot,
            sharding_of(self._program, source, self._session.registry),
            after,
            tuple((user.id, operand) for user, operand in result.uses),
            *self._where(op, slot, after),
            combiner=_combiner(op),
            final_uses=final_uses(result, self._uses),
        )

    def _slot(self, value: Value) -> int:
        return moved_slot(self._session.problem, value, self._slots)

    def _where(self, op: Op, slot: int, after: TensorSharding | None) -> tuple[str, str]:
        """Return the purpose of a communication, and the place of the op that it is for."""
        if op.id in self._steps:
            label = self._labels.of_step[self._steps[op.id]]
            return f"written in the program as {label}", label.location
        dims = None if after is None else tuple(dim.axes for dim in after.dim_shardings)
        constraint = self._constraints.get((slot, dims))
        if constraint is not None and op.name == RESHARD:
            return f"sharding constraint {self._labels.value(constraint)}", self._labels.location(constraint)
        maker = self._labels.maker(slot)
        if maker is not None and (op.name != RESHARD or self._has_propagated_sharding(slot, after)):
            return f"result of {self._labels.of_step[maker]}", self._labels.location(slot)
        uses = list(op.results[0].uses)
        names = [f"operand {number} of {self._name(user)}" for user, number in uses]
        return ", ".join(names) or "nothing", uses[0][0].location if uses else ""

    def _has_propagated_sharding(self, slot: int, sharding: TensorSharding | None) -> bool:
        """Return whether a tensor is moved to the sharding that propagation found."""
        propagated = self._table[self._solution.shardings[slot]]
        return propagated is not None and sharding is not None and propagated.is_equivalent(sharding)

    def _name(self, op: Op) -> str:
        step = self._steps.get(op.id)
        if step is not None:
            return str(self._labels.of_step[step])
        if op.name == RETURN:
            return RETURN
        results = [self._labels.value(slot) for value in op.results if (slot := self._slot(value)) >= 0]
        return f"{op.name} {', '.join(results)}".rstrip()


def _combiner(op: Op) -> str:
    """Return the function by which an all-reduce combines, as Shardy writes it; "" for a sum."""
    word = parse_reduction_op(op.attributes.get("reduction_op"))
    return "" if word == "sum" else word


def _find_constraints(session: Session) -> dict[tuple[int, object], int]:
    """Return the constraints by the slot they constrain and the axes of their dimensions."""
    problem = session.problem
    constraints: dict[tuple[int, object], int] = {}
    for op in session.program.walk():
        if op.name != CONSTRAINT:
            continue
        slot, source = problem.slot_of.get(op.results[0].id, -1), problem.slot_of.get(op.operands[0].id, -1)
        sharding = problem.table.values[problem.initial[slot]]
        if sharding is not None:
            constraints.setdefault((source, tuple(dim.axes for dim in sharding.dim_shardings)), slot)
    return constraints


_REDUCING = ("all_reduce", "reduce_scatter")


def name_transfers(session: Session, evaluation: Evaluation) -> Cost:
    """Return the cost of an evaluation whose transfers say what they are for.

    A reshard may become several collectives, which all have its number; the collective that an all-reduce and a
    reshard become has that of the all-reduce. The numbers are those of `ReshardExplainer.explain`. A halo, a collective
    of the program, and what XLA's partitioner makes where Shardy's explicit reshards do not, have none.

    Args:
        session: The session; its names are best if it keeps them.
        evaluation: One of its evaluations.
    """
    labels = session_labels(session)
    communications = list_communications(session, evaluation.solution, labels)
    by_use: dict[tuple[int, tuple[int, int]], list[Communication]] = {}
    for communication in communications:
        for use in communication.final_uses:
            by_use.setdefault((communication.slot, use), []).append(communication)
    ops = {op.id: op for op in evaluation.program.walk()}
    slots: dict[int, int] = {}
    known_uses: dict[int, Uses] = {}
    transfers = []
    for transfer in evaluation.cost.transfers:
        op = ops[transfer.op_id]
        slot = moved_slot(session.problem, op.operands[0], slots) if op.operands else -1
        uses = final_uses(op.results[0], known_uses) if op.operands and op.results else ()
        source = _communication(transfer.kind, [by_use.get((slot, use), ()) for use in uses], set(uses))
        if source is None:
            transfers.append(_without_number(transfer, op, slot, labels))
            continue
        value = labels.value(source.slot)
        transfers.append(
            evolve(transfer, number=source.number, value=value, where=source.where, location=source.location)
        )
    return evolve(evaluation.cost, transfers=tuple(transfers))


def name_collectives(session: Session, solution: Solution, cost: Cost) -> Cost:
    """Return the cost of a local program whose transfers say what they are for.

    A collective at the location of one communication, which reduces if that does, has its number; several at a location
    have the numbers of as many communications there, in order. One that a communication pass moved elsewhere, or that
    serves several communications, has its location only.

    Args:
        session: The session of the same program; its names are best if it keeps them.
        solution: The solution that the local program was made of.
        cost: The cost of the local program.
    """
    labels = session_labels(session)
    by_place: dict[tuple[str, bool], list[Communication]] = {}
    for communication in list_communications(session, solution, labels):
        is_reducing = communication.kind.removeprefix("sdy.").startswith("all_reduce")
        by_place.setdefault((communication.location, is_reducing), []).append(communication)
    transfer_counts = Counter(map(_place, cost.transfers))
    matched = {
        place: iter(communications)
        for place, communications in by_place.items()
        if place[0] and len(communications) == transfer_counts[place]
    }
    transfers = []
    for transfer in cost.transfers:
        source = next(matched.get(_place(transfer), iter(())), None)
        if source is not None:
            transfer = evolve(transfer, number=source.number, value=labels.value(source.slot), where=source.where)
        transfers.append(transfer)
    return evolve(cost, transfers=tuple(transfers))


def _place(transfer: Transfer) -> tuple[str, bool]:
    """Return the location of a transfer, and whether it reduces."""
    return transfer.location, transfer.kind in _REDUCING


def _without_number(transfer: Transfer, op: Op, slot: int, labels: Labels) -> Transfer:
    """Return a transfer that no reshard of Shardy stands for with the name of its tensor, and the place of its op."""
    users = [user for value in op.results for user in value.users]
    location = next((item.location for item in (op, *users) if item.location), "")
    return evolve(transfer, value=labels.value(slot) if slot >= 0 else "", location=location)


def _communication(
    kind: str, candidates: Iterable[Sequence[Communication]], uses: set[tuple[int, int]]
) -> Communication | None:
    """Return the communication that a transfer comes from: of the same tensor, for the same uses.

    Of a chain of reshards the earlier ones serve the uses of the later ones, too: the most alike uses count.
    """
    by_number = {communication.number: communication for same in candidates for communication in same}
    ordered = [by_number[number] for number in sorted(by_number)]
    is_reducing = kind in _REDUCING
    alike = [
        communication
        for communication in ordered
        if communication.kind.removeprefix("sdy.").startswith("all_reduce") == is_reducing
    ]
    return min(
        alike or ordered,
        key=lambda communication: len(uses.symmetric_difference(communication.final_uses)),
        default=None,
    )
