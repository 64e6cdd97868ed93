"""Measurements as Markdown: ``python -m benchmarks.markdown RESULTS.json`` prints the tables of the documentation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runs import STAGES
from benchmarks.table import megabytes, milliseconds

_PROGRAMS = (
    "program",
    "ops",
    "ours",
    "C++",
    "ratio",
    "ours off",
    "C++ off",
    "to off",
    *STAGES,
    "MB",
    "C++ MB",
    "equal",
)
_TARGETS = ("target", "at most", "measured", "verdict")


def tables(data: dict[str, Any]) -> str:
    """Return the circumstances of the measurement, the table of programs, and the targets."""
    machine, versions = data["machine"], data["versions"]
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    place = f"{data['date']}, {machine['processor']}, {machine['cores']} cores, {packages}."
    return "\n\n".join(
        [
            place,
            _table(_PROGRAMS, map(_program, data["programs"])),
            _table(_TARGETS, map(_target, data["targets"])),
        ]
    )


def _program(item: dict[str, Any]) -> Sequence[str]:
    memory = item["runs"]["memory"]
    return (
        item["name"],
        f"{item['ops']:,}",
        milliseconds(item["our_seconds"]),
        milliseconds(item["reference_seconds"]),
        f"{item['ratio']:.2f}",
        milliseconds(item["our_unverified_seconds"]),
        milliseconds(item["unverified_seconds"]),
        f"{item['unverified_ratio']:.2f}",
        *(milliseconds(item["stages"][stage]) for stage in STAGES),
        *(megabytes(memory[side]) if memory else "" for side in ("ours", "reference")),
        "yes" if item["equal"] else "no",
    )


def _target(item: dict[str, Any]) -> Sequence[str]:
    unit = f" {item['unit']}" if item["unit"] else ""
    measured = "" if item["measured"] is None else f"{item['measured']:.2f}{unit}"
    note = f" ({item['note']})" if item["note"] else ""
    return f"{item['what']}{note}", f"{item['limit']:g}{unit}", measured, item["verdict"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
