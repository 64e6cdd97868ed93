"""Two runs side by side, as text and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from shardy_py.analysis.diff import Decision, Difference, Divergence
from shardy_py.sharding.tensor import TensorSharding


def format_difference(difference: Difference, *, limit: int = 20) -> str:
    """Return where two runs part, and what differs in the end.

    Args:
        difference: The runs.
        limit: How many tensors to list at most.
    """
    return "\n".join(_lines(difference, limit))


def difference_data(difference: Difference) -> dict[str, Any]:
    """Return the same as plain data with stable keys."""
    return {
        "first": difference.first,
        "second": difference.second,
        "tensors": difference.tensors,
        "divergences": [_divergence_data(item) for item in difference.divergences],
        "values": [
            {"value": item.value, "type": item.type, "first": _text(item.first), "second": _text(item.second)}
            for item in difference.values
        ],
    }


def difference_json(difference: Difference) -> str:
    """Return `difference_data` as JSON text."""
    return json.dumps(difference_data(difference), indent=2, ensure_ascii=False)


def _lines(difference: Difference, limit: int) -> Iterator[str]:
    first, second = difference.first, difference.second
    if difference.is_empty:
        yield f"{first} and {second} end alike: {difference.tensors} tensors"
    for item in difference.divergences:
        yield f"{item.run}: the first decision that {item.other} does not end with"
        yield f"  {item.decision}"
        yield f"  {item.other} ends with {item.decision.value} {_text(item.other_sharding) or 'unsharded'}"
        for decision in item.other_decisions:
            yield f"    {decision}"
    if difference.values:
        yield f"{len(difference.values)} of {difference.tensors} tensors differ in the end"
    for value in difference.values[:limit]:
        yield f"  {value.value}: {value.type}"
        yield f"    {first}: {_text(value.first) or 'unsharded'}"
        yield f"    {second}: {_text(value.second) or 'unsharded'}"
    if len(difference.values) > limit:
        yield f"  {len(difference.values) - limit} more"


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
