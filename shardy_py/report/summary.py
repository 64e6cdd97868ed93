"""The report on a propagation: a few lines of text, and a table where ops have no rule."""

from __future__ import annotations

import sys
from typing import IO

from shardy_py.amounts import format_bytes
from shardy_py.api.result import Result
from shardy_py.report.styles import terminal_lines


def print_report(result: Result, *, file: IO[str] | None = None) -> None:
    """Print the summary, and the ops without a rule where there are any."""
    # Written by hand: rich takes longer to import than a small program to propagate.
    stream = file or sys.stdout
    print(terminal_lines(summary_text(result), stream), file=stream)
    if not result.coverage.is_complete:
        from shardy_py.report.tables import print_missing

        print_missing(result.coverage, file=file)


def summary_text(result: Result) -> str:
    """Return the numbers of a propagation as lines, the numbers one below the other."""
    summary, coverage, communications = result.summary, result.coverage, result.communications
    rows = [
        ("ops", f"{summary.ops}"),
        ("tensors", f"{summary.values}"),
        ("  with a sharding", f"{summary.values_with_sharding}"),
        ("  sharded along an axis", f"{summary.values_sharded}"),
        *((f'  along "{name}"', f"{count}") for name, count in summary.axes_used),
        ("communications", f"{sum(communications.values())}"),
        *((f"  {name}", f"{count}") for name, count in communications.items()),
        ("parameter bytes", format_bytes(summary.parameter_bytes)),
        ("  per device", format_bytes(summary.parameter_bytes_per_device)),
        ("ops with a rule", f"{coverage.covered} of {coverage.ops}"),
    ]
    width, digits = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [f"  {name:<{width}}   {number:>{digits}}" for name, number in rows]
    return "\n".join(["Propagated", "", *lines, ""])
