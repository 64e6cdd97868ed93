"""Explanations, and the difference of two schedules, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from attrs import asdict

from shardy_py.errors import Diagnostic
from shardy_py.explain.answer.explanations import NotSettled, OpExplanation, ValueExplanation
from shardy_py.explain.answer.moves import Chain, chain_lines, dim_text, refusal_lines
from shardy_py.explain.diff import Decision, Divergence, ScheduleDiff
from shardy_py.explain.explain_reshard import CommunicationLine, MovedDimension, ReshardExplanation
from shardy_py.explain.reshard_proposals import Trial
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.report.data import record_json
from shardy_py.report.terminal_text import terminal_lines
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.labels import at_place

Explanation = ValueExplanation | OpExplanation | ReshardExplanation | CommunicationLine | NotSettled


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data with stable keys: the fields of the classes."""
    return asdict(explanation)


def explanation_json(explanation: Explanation, *, warnings: Iterable[Diagnostic] = ()) -> str:
    """Return `explanation_data` as JSON text, with the warnings of the run."""
    return record_json(explanation_data(explanation), warnings=warnings)


def explanations_json(explanations: Iterable[Explanation]) -> str:
    """Return several explanations as JSON text."""
    return json.dumps([explanation_data(explanation) for explanation in explanations], indent=2, ensure_ascii=False)


def format_reshard(explanation: ReshardExplanation) -> str:
    """Return the explanation of a communication as lines; the trials aside."""
    return "\n".join(_reshard_lines(explanation))


def _reshard_lines(explanation: ReshardExplanation) -> Iterator[str]:
    communication = explanation.communication
    yield str(communication)
    yield from (f"  in the local program: {change}" for change in communication.changes)
    for moved in explanation.differences:
        yield from _moved_lines(communication.value, moved)
    words = [word for word in explanation.combiners if word != "add"]
    by = f" by {', '.join(words)}" if words else ""
    for chain in explanation.reduced:
        yield f"  {chain.axis} shards what is reduced{by}: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if not explanation.differences and not explanation.reduced:
        moves = communication.kind != RESHARD or communication.before != communication.after
        yield f"  no dimension moves{': this is about unreduced axes' if moves else ', nothing has to be sent'}"


def chain_start(chain: Chain) -> str:
    """Return the dimension that a chain is about."""
    first = chain.moves[0] if chain.moves else chain.origin
    return dim_text(first.value, first.dimension)


def _moved_lines(value: str, moved: MovedDimension) -> Iterator[str]:
    yield f"dimension {moved.dimension} of {value}"
    for chain in moved.gone:
        yield f"  loses {chain.axis}, which it has from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if moved.stopped:
        yield "  which did not go on:"
        yield from (f"    {line}" for line in refusal_lines(moved.stopped))
    if moved.come:
        yield f"  gets {', '.join(moved.come)}"
    for chain in moved.wanted:
        yield f"  {chain.axis} is on {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for chain in moved.rivals:
        yield f"  the op has {chain.axis} along another factor: {chain_start(chain)}, from {chain.origin.annotation}"
        yield from (f"    {line}" for line in chain_lines(chain))
    if moved.reasons:
        yield "  it has not got it before:"
        yield from (f"    {line}" for line in refusal_lines(moved.reasons))


def print_reshard(explanation: ReshardExplanation, *, file: IO[str] | None = None) -> None:
    """Print the explanation of a communication, and a table of trials that would remove it."""
    from shardy_py.report.terminal import open_console, print_table

    console = open_console(file)
    print(terminal_lines(format_reshard(explanation), console.file), file=console.file)
    headings = ("annotation", "removes it", "communication", "tensors changed")
    if explanation.trials:
        rows = map(_cells, explanation.trials)
        print_table(console, "What another annotation would change", headings, [rows], words=headings)


def _cells(trial: Trial) -> tuple[str, str, str, str]:
    if trial.error:
        return trial.text, "fails", trial.error, ""
    counts = f"{trial.total_before} -> {trial.total_after}{_kinds(trial.before, trial.after)}"
    return trial.text, "yes" if trial.removes else "no", counts, str(trial.values_changed)


def _kinds(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the changes by kind, where there are several kinds."""
    kinds = [kind for kind in sorted({*before, *after}) if before.get(kind, 0) != after.get(kind, 0)]
    if len({*before, *after}) < 2 or not kinds:
        return ""
    changes = [f"{kind.removeprefix('sdy.')} {before.get(kind, 0)} -> {after.get(kind, 0)}" for kind in kinds]
    return f" ({', '.join(changes)})"


def format_diff(diff: ScheduleDiff, *, limit: int = 20) -> str:
    """Return the divergences and the differing tensors of two runs, as lines.

    Args:
        diff: The runs.
        limit: The most tensors to list.
    """
    return "\n".join(_lines(diff, limit))


def diff_data(diff: ScheduleDiff) -> dict[str, Any]:
    """Return a difference as plain data with stable keys."""
    return {
        "first": diff.first,
        "second": diff.second,
        "tensors": diff.tensors,
        "divergences": [_divergence_data(item) for item in diff.divergences],
        "values": [
            {
                "value": item.value,
                "location": item.location,
                "type": item.type,
                "first": _text(item.first),
                "second": _text(item.second),
            }
            for item in diff.values
        ],
    }


def diff_json(
    diff: ScheduleDiff, *, origin: Mapping[str, Any] | None = None, warnings: Iterable[Diagnostic] = ()
) -> str:
    """Return `diff_data` as JSON text, with its origin and warnings."""
    return record_json(diff_data(diff), origin, warnings=warnings)


def _lines(diff: ScheduleDiff, limit: int) -> Iterator[str]:
    first, second = diff.first, diff.second
    if diff.is_empty:
        yield f"{first} and {second} end alike: {diff.tensors} tensors"
    for item in diff.divergences:
        yield f"{item.run}: the first decision that {item.other} does not end with"
        yield f"  {item.decision}"
        yield f"  {item.other} ends with {item.decision.value} {_text(item.other_sharding) or 'unsharded'}"
        for decision in item.other_decisions:
            yield f"    {decision}"
    if diff.values:
        yield f"{len(diff.values)} of {diff.tensors} tensors differ in the end"
    for value in diff.values[:limit]:
        yield f"  {value.value}: {value.type}{at_place(value.location)}"
        yield f"    {first}: {_text(value.first) or 'unsharded'}"
        yield f"    {second}: {_text(value.second) or 'unsharded'}"
    if len(diff.values) > limit:
        yield f"  {len(diff.values) - limit} more"


def _divergence_data(item: Divergence) -> dict[str, Any]:
    return {
        "run": item.run,
        "decision": _decision_data(item.decision),
        "other": item.other,
        "other_sharding": _text(item.other_sharding),
        "other_decisions": [_decision_data(decision) for decision in item.other_decisions],
    }


def _decision_data(decision: Decision) -> dict[str, Any]:
    return {
        "number": decision.number,
        "op": decision.op,
        "results": decision.results,
        "location": decision.location,
        "value": decision.value,
        "dim": decision.dim,
        "axes": list(map(str, decision.axes)),
        "level": decision.level,
        "level_name": decision.level_name,
        "user_priority": decision.user_priority,
    }


def _text(sharding: TensorSharding | None) -> str | None:
    return None if sharding is None else str(sharding)
