"""Records as JSON text, with their origin: what they were computed of, how, and by which version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ORIGIN = "origin"


def record_json(data: Mapping[str, Any], origin: Mapping[str, Any] | None = None) -> str:
    """Return a record as JSON text.

    Args:
        data: The record.
        origin: What a reader needs to get the same record again; None where the caller knows it.
    """
    record = dict(data) if origin is None else {ORIGIN: origin, **data}
    return json.dumps(record, indent=2, ensure_ascii=False)
