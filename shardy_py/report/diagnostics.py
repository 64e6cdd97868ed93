"""Warnings as plain data, for the reports of all commands."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.errors import Diagnostic


def diagnostics_data(diagnostics: Iterable[Diagnostic]) -> list[dict[str, str]]:
    """Return diagnostics as plain data with stable keys."""
    return [
        {"code": item.code, "message": item.message, "location": item.location, "op": item.op, "hint": item.hint}
        for item in diagnostics
    ]
