"""A comparison of schedules as a table and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from attrs import evolve
from rich.console import Console
from rich.table import Table

from shardy_py.cost.sweeps.comparison import Comparison
from shardy_py.cost.sweeps.outcomes import Row, outcome_data
from shardy_py.report.data import diagnostics_data, record_json
from shardy_py.report.terminal import BAD, make_tables, open_console, print_lines
from shardy_py.support.texts import format_bytes, format_seconds

_HEADINGS = ("schedule", "time", "for\ncomm.", "bytes\nsent", "peak\nmemory", "useful\nwork")
_CHANGED = "tensors\nchanged"
_WORDS = ("schedule",)
_NAMES = 5


def print_comparison(comparison: Comparison, *, limit: int | None = None, file: IO[str] | None = None) -> None:
    """Print the numbers, the best first, each line once with the schedules that lead to it.

    Then come the schedules that have no result, with the reason.

    Args:
        comparison: The comparison.
        limit: The most different lines; the first schedule always has one.
        file: Where to print, by default stdout.
    """
    console = open_console(file)
    groups = group_alike(comparison)
    shown = _limit_groups(groups, comparison.first, limit)
    if shown:
        tables = _tables(console, comparison, shown)
        estimated = "costs are estimated from shardings"
        tables[-1].caption = f"* {comparison.first}, with which the others are compared; {estimated}"
        for table in tables:
            console.print(table)
    if len(shown) < len(groups):
        rest = sum(map(len, groups)) - sum(map(len, shown))
        print_lines(console, [f"{rest} schedules more, with {len(groups) - len(shown)} other results"])
    for refusal in comparison.refused:
        print_lines(console, [f"{refusal.name}: {'; '.join(refusal.problems)}"], BAD)


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data with stable keys; sizes are in bytes, times in seconds."""
    return {
        "first": comparison.first,
        "sorted_by": comparison.sorted_by,
        "rows": [outcome_data(row) for row in comparison.rows],
        "refused": [outcome_data(item) for item in comparison.refused],
        "warnings": diagnostics_data(comparison.warnings),
    }


def comparison_json(comparison: Comparison, origin: Mapping[str, Any] | None = None) -> str:
    """Return `comparison_data` as JSON text, with its origin."""
    return record_json(comparison_data(comparison), origin)


def group_alike(comparison: Comparison) -> list[list[Row]]:
    """Return the rows in groups that differ in nothing but their schedules; in a group the first schedule leads.

    Args:
        comparison: The comparison.
    """
    groups: dict[Row, list[Row]] = {}
    for row in comparison.rows:
        groups.setdefault(evolve(row, name="", schedule=""), []).append(row)
    return [sorted(group, key=lambda row: row.name != comparison.first) for group in groups.values()]


def _limit_groups(groups: list[list[Row]], first: str, limit: int | None) -> list[list[Row]]:
    if limit is None or limit >= len(groups):
        return groups
    needed = [group for group in groups[limit:] if group[0].name == first]
    return [*groups[: limit - len(needed)], *needed]


def _tables(console: Console, comparison: Comparison, groups: Sequence[Sequence[Row]]) -> list[Table]:
    """Return one table, and where the console is too narrow for it, the collectives in a second one."""
    kinds = sorted({item.kind for row in comparison.rows for item in row.collectives})
    counts = [kind.replace("_", "\n") for kind in kinds]
    title = f"{len(comparison.rows)} schedules by {comparison.sorted_by}, the best first"
    names = [_names(group, comparison.first) for group in groups]
    first = [group[0] for group in groups]
    pairs = list(zip(names, first, strict=True))
    rows = [(name, *_numbers(row), *_counts(row, kinds), _changed(row)) for name, row in pairs]
    tables = make_tables(console, title, (*_HEADINGS, *counts, _CHANGED), [rows], words=_WORDS)
    if not kinds or len(tables) == 1:
        return tables
    numbers = [(name, *_numbers(row), _changed(row)) for name, row in pairs]
    collectives = [(name, *_counts(row, kinds)) for name, row in pairs]
    return [
        *make_tables(console, title, (*_HEADINGS, _CHANGED), [numbers], words=_WORDS),
        *make_tables(console, "collectives in the program", ("schedule", *counts), [collectives], words=_WORDS),
    ]


def _changed(row: Row) -> str:
    return str(row.values_changed)


def _names(group: Sequence[Row], first: str) -> str:
    """Return the names of schedules that lead to the same, one per line, and how many more there are."""
    shown = group if len(group) <= _NAMES else group[: _NAMES - 1]
    names = [f"{row.name} *" if row.name == first else row.name for row in shown]
    return "\n".join([*names, *([f"{len(group) - len(shown)} more"] if len(shown) < len(group) else ())])


def _numbers(row: Row) -> list[str]:
    return [
        _seconds(row.seconds),
        _seconds(row.communication_seconds),
        format_bytes(round(row.communication_bytes)),
        format_bytes(round(row.peak_bytes)),
        "-" if row.balance is None else f"{row.balance:.0%}",
    ]


def _counts(row: Row, kinds: Sequence[str]) -> list[str]:
    counts = {item.kind: item.count for item in row.collectives}
    return [str(counts.get(kind, 0)) for kind in kinds]


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)
