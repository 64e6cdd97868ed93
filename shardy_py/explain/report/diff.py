"""Difference of two schedules, as text and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.explain.diff import Decision, Divergence, ScheduleDiff
from shardy_py.report.data import record_json
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.labels import at_place


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
