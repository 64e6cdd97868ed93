"""Measurements as lines of text."""

from __future__ import annotations

from benchmarks.measure import Measurement
from benchmarks.runs import STAGES

_COLUMNS = ("program", "ops", "ours ms", "C++ ms", "ratio", "by CPU", "no verifier", *STAGES, "equal")
_WIDTHS = (28, 7, 9, 9, 6, 6, 11, *(8 for _ in STAGES), 5)


def head() -> str:
    """Return the line above measurements."""
    return _line(_COLUMNS)


def row(item: Measurement) -> str:
    """Return a measurement as a line; stages in milliseconds."""
    return _line(
        (
            item.name,
            str(item.ops),
            _ms(item.our_seconds),
            _ms(item.reference_seconds),
            f"{item.ratio:.2f}",
            f"{item.cpu_ratio:.2f}",
            _ms(item.unverified.seconds),
            *(_ms(item.stages[stage]) for stage in STAGES),
            "yes" if item.equal else "NO",
        )
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}" if seconds < 10 else f"{seconds * 1000:.0f}"


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = zip(cells, _WIDTHS, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])
