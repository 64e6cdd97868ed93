"""Transfers of a cost with the numbers and places of the communications that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from shardy_py.cost.communications import Communication, Uses, final_uses, list_communications, moved_slot
from shardy_py.cost.estimates import Cost, Transfer
from shardy_py.cost.session import Evaluation, Session
from shardy_py.cost.session_labels import session_labels
from shardy_py.ir.graph.program import Op
from shardy_py.trace.labels import Labels

_REDUCING = ("all_reduce", "reduce_scatter")


def name_transfers(session: Session, found: Evaluation) -> Cost:
    """Return the cost of an evaluation whose transfers say what they are for.

    A reshard may become several collectives, which all have its number; the collective that an all-reduce and a
    reshard become has that of the all-reduce. The numbers are those of `ReshardExplainer.explain`. A halo, a collective
    of the program, and what XLA's partitioner makes where Shardy's explicit reshards do not, have none.

    Args:
        session: The session; its names are best if it keeps them.
        found: One of its evaluations.
    """
    labels = session_labels(session)
    communications = list_communications(session, found.solution, labels)
    by_use: dict[tuple[int, tuple[int, int]], list[Communication]] = {}
    for one in communications:
        for use in one.final_uses:
            by_use.setdefault((one.slot, use), []).append(one)
    ops = {op.id: op for op in found.program.walk()}
    slots: dict[int, int] = {}
    known_uses: dict[int, Uses] = {}
    transfers = []
    for transfer in found.cost.transfers:
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
    return evolve(found.cost, transfers=tuple(transfers))


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
    by_number = {one.number: one for same in candidates for one in same}
    found = [by_number[number] for number in sorted(by_number)]
    is_reducing = kind in _REDUCING
    alike = [one for one in found if one.kind.removeprefix("sdy.").startswith("all_reduce") == is_reducing]
    return min(alike or found, key=lambda one: len(uses.symmetric_difference(one.final_uses)), default=None)
