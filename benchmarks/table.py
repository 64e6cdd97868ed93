"""Measurements as lines of text."""

from __future__ import annotations

from benchmarks.measure import Measurement, Skipped
from benchmarks.runs import STAGES

_COLUMNS = (
    "program",
    "ops",
    "ours",
    "C++",
    "ratio",
    "by CPU",
    "ours off",
    "C++ off",
    "to off",
    "repeated",
    "first",
    *STAGES,
    "MB",
    "C++ MB",
    "again",
    "equal",
)
_WIDTHS = (28, 7, 7, 7, 5, 6, 8, 7, 6, 8, 6, *(max(6, len(stage)) for stage in STAGES), 6, 6, 5, 5)
LEGEND = """\
ours, C++: medians, in ms, as are the stages of ours. ratio: the median over the alternations of one run of ours by the
one of the C++ after it. by CPU: the ratio by processor time. ours off, C++ off: without MLIR's verifier, which runs
over the module once in ours and after every pass in the C++; ours on a module whose bytecode has other tables than any
before. to off: the ratio of these, by processor time; repeated: the same where the tables come again; first: the same
of our first run, which also imports what no program before needed, and which the medians leave out. MB: the most that a
run adds to the memory of its process. again: solving the compiled problem with another schedule, as a share of
ours."""


def head() -> str:
    """Return the line above measurements."""
    return _line(_COLUMNS)


def row(item: Measurement | Skipped) -> str:
    """Return a measurement as a line."""
    if isinstance(item, Skipped):
        return f"{item.name}: left out, {item.reason}"
    memory, share = item.memory, item.again_share
    return _line(
        (
            item.name,
            str(item.ops),
            milliseconds(item.our_seconds),
            milliseconds(item.reference_seconds),
            f"{item.ratio:.2f}",
            f"{item.cpu_ratio:.2f}",
            milliseconds(item.our_unverified_seconds),
            milliseconds(item.unverified_seconds),
            f"{item.unverified_ratio:.2f}",
            f"{item.repeated_ratio:.2f}",
            f"{item.first_ratio:.2f}",
            *(milliseconds(item.stages[stage]) for stage in STAGES),
            "-" if memory is None else megabytes(memory.ours),
            "-" if memory is None else megabytes(memory.reference),
            "-" if share is None else f"{share:.2f}",
            "yes" if item.equal else "NO",
        )
    )


def passes(item: Measurement, *, least: float = 0.005) -> str:
    """Return the times of the passes, the longest first.

    Args:
        item: The measurement.
        least: Passes with a smaller share of the whole are left out.
    """
    whole = item.our_seconds
    rows = sorted(((time, name) for name, time in item.passes.items() if time >= least * whole), reverse=True)
    lines = [f"    {milliseconds(time):>7}  {time / whole:4.0%}  {name}" for time, name in rows]
    return "\n".join([f"{item.name}: ms, share, pass", *lines])


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, with a digit behind the point where it is short."""
    return f"{seconds * 1000:.1f}" if seconds < 1 else f"{seconds * 1000:.0f}"


def megabytes(size: int) -> str:
    """Return a size in megabytes."""
    return f"{size / 1e6:.1f}"


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = zip(cells, _WIDTHS, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])
