"""Proposals of a page: other annotations for the transfers that send most, each priced by solving again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from shardy_py.cost.communications import Communication
from shardy_py.cost.estimates import Cost
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.cost.session import Session
from shardy_py.errors import ShardyError
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.explore.page import StepCallback, tell_nothing
from shardy_py.explain.reshard_proposals import Proposal, propose
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.sharding.jax_text import jax_constraint
from shardy_py.trace.chains import find_chains
from shardy_py.trace.slots import SlotDim, axes_of

_TRIALS = 2


def find_proposals(
    explainer: ReshardExplainer,
    cost: Cost,
    *,
    most: int,
    machine: MachineLike | None = None,
    step: StepCallback = tell_nothing,
) -> list[dict[str, Any]]:
    """Return proposals as plain data, those that leave fewest bytes to send first.

    Args:
        explainer: The explainer of the order.
        cost: Its cost, whose transfers have numbers.
        most: How many transfers to look at, those that send most first; two proposals are tried for each.
        machine: What the program runs on.
        step: Called as each transfer starts.
    """
    sent: dict[int, float] = {}
    for transfer in cost.transfers:
        if transfer.number >= 0 and transfer.bytes:
            sent[transfer.number] = sent.get(transfer.number, 0.0) + transfer.runs * transfer.bytes
    largest = sorted(sent, key=lambda number: (-sent[number], number))[:most]
    rows: list[dict[str, Any]] = []
    tried = set[str]()
    for number in largest:
        step(f"Trying annotations for transfer {number}")
        for proposal in islice(_proposals(explainer, explainer.communications[number]), _TRIALS):
            if proposal.text not in tried:
                tried.add(proposal.text)
                rows.extend(_tried(explainer, proposal, number, cost, machine))
    return sorted(rows, key=lambda row: (row["bytes"], row["text"]))


def _proposals(explainer: ReshardExplainer, communication: Communication) -> Iterator[Proposal]:
    trace = explainer.trace
    dims = dict.fromkeys(_annotated(explainer, communication)) if communication.slot >= 0 else {}
    target = communication.after if communication.kind == RESHARD else None
    yield from propose(trace.annotations, dims, explainer.labels, moved=communication.slot, target=target)


def _annotated(explainer: ReshardExplainer, communication: Communication) -> Iterator[SlotDim]:
    """Yield the annotated dimensions that the axes of a tensor come from."""
    sharding = explainer.trace.history.last(communication.slot)
    for dimension in range(sharding.rank if sharding is not None else 0):
        for axis in axes_of(sharding, dimension):
            for chain in find_chains(explainer.trace, communication.slot, dimension, axis):
                yield chain.slot, chain.dimension


def _tried(
    explainer: ReshardExplainer, proposal: Proposal, number: int, before: Cost, machine: MachineLike | None
) -> Iterator[dict[str, Any]]:
    """Yield a proposal with its effect, unless it ends with an error."""
    try:
        session: Session = explainer.session.with_shardings(proposal.shardings)
        after = session.price(session.solve(explainer.schedule), machine).cost
    except ShardyError:
        return
    slot, sharding = next(iter(proposal.shardings.items()))
    yield {
        "number": number,
        "text": proposal.text,
        "bytes": after.communication_bytes.value,
        "useful": (after.communication_bytes.value or 0) < (before.communication_bytes.value or 0),
        "before": _quantities(before),
        "after": _quantities(after),
        "line": jax_constraint(sharding) if proposal.kind == "constrain" else "",
        "place": explainer.labels.location(slot),
    }


def _quantities(cost: Cost) -> dict[str, Any]:
    return {
        "sent": cost.communication_bytes.value,
        "peak": cost.peak_bytes.value,
        "seconds": cost.seconds.value,
    }
