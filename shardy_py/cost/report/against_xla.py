"""Estimates beside XLA's figures, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from shardy_py.cost.against_xla import EstimateComparison, XlaComparison
from shardy_py.errors import Diagnostic
from shardy_py.report.data import record_json
from shardy_py.report.terminal import NOTE, open_console, print_lines, print_table
from shardy_py.support.texts import format_bytes, format_count

_WORDS = ("what", "kind")
_LABELS = {
    "flops": "operations",
    "transcendentals": "transcendental operations",
    "memory_traffic_bytes": "bytes accessed",
    "communication_bytes": "bytes sent",
    "argument_bytes": "argument bytes",
    "result_bytes": "result bytes",
    "peak_bytes": "peak memory",
}


def print_against_xla(comparison: XlaComparison, *, file: IO[str] | None = None) -> None:
    """Print estimates beside XLA's figures.

    Args:
        comparison: The comparison.
        file: Where to; stdout by default.
    """
    console = open_console(file)
    title = f"Against XLA for host devices, on one of {comparison.cost.devices}; profile {comparison.cost.profile}"
    print_table(console, title, ("what", "estimate", "XLA", "ratio"), [_rows(comparison)], words=_WORDS)
    headings = ("kind", "count", "XLA's", "runs", "XLA's runs", "bytes sent", "XLA's bytes")
    print_table(console, "Collectives, loops counted", headings, [_kind_rows(comparison)], words=_WORDS)
    for note in comparison.cost.notes:
        print_lines(console, [f"note: {note}"], NOTE)
    if comparison.figures.unknown_loops:
        note = f"note: XLA does not know how often {comparison.figures.unknown_loops} loops run: counted once"
        print_lines(console, [note], NOTE)


def against_xla_json(
    comparison: XlaComparison,
    *,
    transfers: bool = False,
    origin: Mapping[str, Any] | None = None,
    warnings: Iterable[Diagnostic] = (),
) -> str:
    """Return a comparison as JSON text, with its origin and warnings; see `XlaComparison.to_json`."""
    return record_json(comparison.to_json(transfers=transfers), origin, warnings=warnings)


def _rows(comparison: XlaComparison) -> Iterable[Sequence[str]]:
    for item in comparison.numbers:
        ratio = "" if item.ratio is None else f"{item.ratio:.2f}"
        yield _LABELS[item.name], _format(item, item.estimate), _format(item, item.xla), ratio


def _format(item: EstimateComparison, number: float) -> str:
    return format_bytes(round(number)) if item.name.endswith("bytes") else format_count(number)


def _kind_rows(comparison: XlaComparison) -> Iterable[Sequence[str]]:
    for item in comparison.kinds:
        sent = (format_bytes(round(item.bytes)), format_bytes(round(item.xla_bytes)))
        yield item.kind, f"{item.count}", f"{item.xla_count}", f"{item.runs:g}", f"{item.xla_runs:g}", *sent
