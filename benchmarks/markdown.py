"""Measurements as Markdown: ``python -m benchmarks.markdown RESULTS.json PAGE`` writes them into the page.

They stand between two comments, and what stood there goes. The targets come first, then the programs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runs import STAGES
from benchmarks.table import megabytes, milliseconds

BEGIN, END = "<!-- begin of measurements -->", "<!-- end of measurements -->"
_RATIOS = ("program", "ops", "ours off", "C++ off", "to off", "repeated", "first", "ratio")
_DETAILS = (*STAGES, "MB", "C++ MB")
_TARGETS = ("what", "at most", "measured", "verdict", "")


def tables(data: dict[str, Any]) -> str:
    """Return the circumstances of the measurement, the targets, the programs made here, and those in files."""
    machine, versions = data["machine"], data["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    made = [item for item in data["programs"] if not item["is_file"]]
    files = sorted((item for item in data["programs"] if item["is_file"]), key=lambda item: item["unverified_ratio"])
    parts = [
        f"{data['date']}, {machine['processor']}, {machine['cores']} cores, {packages}:",
        _table(_TARGETS, map(_target, data["targets"])),
    ]
    if made:
        parts += [
            "Programs of the benchmark:",
            _table(_RATIOS + _DETAILS, [_ratios(item) + _details(item) for item in made]),
        ]
    if files:
        parts += ["Programs in files, the best first:", _table(_RATIOS, map(_ratios, files))]
    return "\n\n".join(parts)


def write_tables(data: dict[str, Any], page: str) -> str:
    """Return a page with the tables between its two comments.

    Raises:
        ValueError: the page does not have both comments.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page has no {END if begin else BEGIN}")
    return f"{before}{BEGIN}\n\n{tables(data)}\n\n{END}{after}"


def _ratios(item: dict[str, Any]) -> tuple[str, ...]:
    return (
        item["name"],
        f"{item['ops']:,}",
        milliseconds(item["our_unverified_seconds"]),
        milliseconds(item["unverified_seconds"]),
        *(f"{item[name]:.2f}" for name in ("unverified_ratio", "repeated_ratio", "first_ratio", "ratio")),
    )


def _details(item: dict[str, Any]) -> tuple[str, ...]:
    memory = item["runs"]["memory"]
    return (
        *(milliseconds(item["stages"][stage]) for stage in STAGES),
        *(megabytes(memory[side]) if memory else "" for side in ("ours", "reference")),
    )


def _target(item: dict[str, Any]) -> Sequence[str]:
    unit = f" {item['unit']}" if item["unit"] else ""
    measured = "" if item["measured"] is None else f"{item['measured']:.2f}{unit}"
    return item["what"], f"{item['limit']:g}{unit}", measured, item["verdict"], item["note"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" if name else "---" for name in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    results, page = map(Path, sys.argv[1:])
    text = page.read_text(encoding="utf-8")
    page.write_text(write_tables(json.loads(results.read_text(encoding="utf-8")), text), encoding="utf-8")
