"""Results of a run on devices, as a table and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import IO, Any

from attrs import asdict
from rich.text import Text

from shardy_py.api.running import ResultLine, RunReport
from shardy_py.report.terminal import make_table, open_console

_PIPE_WIDTH = 160
_HEADINGS = ("result", "type", "sharding", "largest", "not finite")
_COMPARED = ("difference", "relative", "tolerance", "other NaNs", "")
_WORDS = ("result", "type", "sharding")


def print_run(report: RunReport, *, file: IO[str] | None = None) -> None:
    """Print the results of a run, with their differences where there was a comparison."""
    console = open_console(file, pipe_width=_PIPE_WIDTH)
    headings = (*_HEADINGS, *(_COMPARED if report.compared_with else ()))
    console.print(make_table(console, _title(report), headings, [map(_cells, report.results)], words=_WORDS))
    console.print(Text(_verdict(report)))
    for note in report.notes:
        console.print(Text(f"note: {note}"))


def run_json(report: RunReport) -> str:
    """Return a run as JSON text; what is infinite is a string."""
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
    return json.dumps(data, indent=2, ensure_ascii=False)


def _title(report: RunReport) -> str:
    noun = "device" if report.devices == 1 else "devices"
    kind = f"host {noun}" if report.platform == "cpu" else f"{noun} of {report.platform}"
    return f"Ran on {report.devices} {kind} in {report.seconds:.3g} s"


def _cells(line: ResultLine) -> Sequence[str]:
    cells = (line.name, line.type, line.sharding or "replicated", f"{line.largest:.4g}", f"{line.not_finite}")
    item = line.difference
    if item is None:
        return cells
    verdict = "" if item.is_within else "differs"
    return (*cells, f"{item.absolute:.2e}", f"{item.relative:.2e}", f"{item.tolerance:g}", f"{item.nans}", verdict)


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
