"""Records as JSON text, with their origin: what they were computed of, how, and by which version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.report.diagnostics import diagnostics_data

ORIGIN = "origin"


def record_json(
    data: Mapping[str, Any], origin: Mapping[str, Any] | None = None, *, warnings: Iterable[Diagnostic] | None = None
) -> str:
    """Return a record as JSON text.

    Args:
        data: The record.
        origin: What a reader needs to get the same record again; None where the caller knows it.
        warnings: What the user should know, as the key ``warnings``; None where the record has it.
    """
    record = dict(data) if origin is None else {ORIGIN: origin, **data}
    if warnings is not None:
        record["warnings"] = diagnostics_data(warnings)
    return json.dumps(record, indent=2, ensure_ascii=False)
