"""Results of a run on devices, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from attrs import asdict
from rich.console import Console
from rich.table import Table

from shardy_py.errors import Diagnostic
from shardy_py.jax.run_report import ResultLine, RunReport
from shardy_py.report.data import record_json
from shardy_py.report.terminal import BAD, GOOD, NOTE, make_tables, open_console, print_lines

_HEADINGS = ("result", "type", "sharding", "largest", "not finite")
_COMPARED = ("difference", "relative", "tolerance", "other NaNs", "")
_WORDS = ("result", "type", "sharding")


def print_run(report: RunReport, *, file: IO[str] | None = None) -> None:
    """Print the results of a run, with their differences where there was a comparison."""
    console = open_console(file)
    for table in _tables(console, report):
        console.print(table)
    if report.compared_with or not report.notes:
        style = (GOOD if report.is_within else BAD) if report.compared_with else ""
        print_lines(console, [_verdict(report)], style)
    print_lines(console, (f"note: {note}" for note in report.notes), NOTE)


def _tables(console: Console, report: RunReport) -> list[Table]:
    """Return one table, and where the console is too narrow for it, the differences in a second one."""
    rows = [_cells(line) for line in report.results]
    differences = [_difference_cells(line) for line in report.results]
    title = _title(report)
    if not report.compared_with:
        return make_tables(console, title, _HEADINGS, [rows], words=_WORDS)
    joined = [(*row, *difference) for row, difference in zip(rows, differences, strict=True)]
    tables = make_tables(console, title, (*_HEADINGS, *_COMPARED), [joined], words=_WORDS)
    if len(tables) == 1:
        return tables
    compared = [(line.name, *cells) for line, cells in zip(report.results, differences, strict=True)]
    return [
        *make_tables(console, title, _HEADINGS, [rows], words=_WORDS),
        *make_tables(console, "differences", ("result", *_COMPARED), [compared], words=_WORDS),
    ]


def run_json(report: RunReport, *, origin: Mapping[str, Any] | None = None, warnings: Iterable[Diagnostic] = ()) -> str:
    """Return a run as JSON text, with its origin and warnings; what is infinite is a string."""
    results = [_plain(asdict(line)) for line in report.results]
    for line, data in zip(report.results, results, strict=True):
        if line.difference is not None:
            data["difference"]["is_within"] = line.difference.is_within
    data = {
        "devices": report.devices,
        "platform": report.platform,
        "seconds": report.seconds,
        "compared_with": report.compared_with or None,
        "is_within": report.is_within,
        "notes": list(report.notes),
        "results": results,
    }
    return record_json(data, origin, warnings=warnings)


def _title(report: RunReport) -> str:
    noun = "device" if report.devices == 1 else "devices"
    kind = f"host {noun}" if report.platform == "cpu" else f"{noun} of {report.platform}"
    return f"Ran on {report.devices} {kind} in {report.seconds:.3g} s"


def _cells(line: ResultLine) -> Sequence[str]:
    return line.name, line.type, line.sharding or "replicated", f"{line.largest:.4g}", f"{line.not_finite}"


def _difference_cells(line: ResultLine) -> Sequence[str]:
    item = line.difference
    if item is None:
        return [""] * len(_COMPARED)
    verdict = "" if item.is_within else "differs"
    return (f"{item.absolute:.2e}", f"{item.relative:.2e}", f"{item.tolerance:g}", f"{item.nans}", verdict)


def _verdict(report: RunReport) -> str:
    if not report.compared_with:
        return "not compared: --compare runs the program without shardings, too"
    wrong = sum(1 for line in report.results if line.difference is not None and not line.difference.is_within)
    beyond = f"{wrong} of {len(report.results)} results differ" if wrong else "the results are the same"
    return f"compared with {report.compared_with}: {beyond}"


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return data without numbers that JSON does not have."""
    return {
        name: _plain(value) if isinstance(value, dict) else str(value) if _is_infinite(value) else value
        for name, value in data.items()
    }


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
