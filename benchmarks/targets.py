"""Targets of the benchmarks, with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from attrs import frozen

from benchmarks.fixed_costs import FixedCosts
from benchmarks.measure import Measurement
from benchmarks.programs import HUGE
from benchmarks.starts import Starts

FILE_OPS = 500
"""Programs in files count from so many ops on."""
SMALL_OPS = (100, 500)
"""Smallest and largest number of ops of small programs."""
TINY_OPS = 50
"""Smallest number of ops of the small programs that are compared with the C++ passes without the verifier."""

Verdict = Literal["pass", "FAIL", "not measured"]


@frozen
class Target:
    """One line of the table of targets.

    Args:
        what: The quantity that is compared.
        limit: At most this.
        measured: The measured value; None if there is none.
        unit: Of both; "" for a ratio.
        note: Which program it is about, where that is not said.
    """

    what: str
    limit: float
    measured: float | None
    unit: str = ""
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Verdict on the target: met or not."""
        if self.measured is None:
            return "not measured"
        return "pass" if self.measured <= self.limit else "FAIL"


def targets(items: Sequence[Measurement], starts: Starts | None, fixed: FixedCosts | None = None) -> list[Target]:
    """Return all targets with the measured values."""
    made = {item.name: item for item in items if not item.is_file}
    small, large = made.get("gpt-32"), made.get("gpt-128")
    distinct, huge = made.get("distinct"), made.get(HUGE.name)
    memory = large.memory if large is not None else None
    return [
        _program("GPT 32 layers unrolled", 0.5, small),
        _program("GPT 128 layers unrolled", 0.5, large),
        _files(items),
        _small(items),
        *(_unverified(f"GPT of {layers} layers", 0.7, [item]) for item, layers in ((small, 32), (large, 128))),
        *_unverified_files(items),
        _one_op(fixed),
        _program("10,000 ops with no two alike", 2.0, distinct),
        _growth(small, large),
        *(_again(item, layers) for item, layers in ((small, 32), (large, 128))),
        Target("peak additional memory at 128 layers, ours / C++", 1.2, memory.ratio if memory else None),
        _import(starts),
        Target("shardy --help", 400, starts.help_seconds * 1000 if starts else None, "ms"),
        _command(starts),
        Target("100,000 ops: finishes and is equal", 0, None if huge is None else float(not huge.equal), "failures"),
        _equal(items),
    ]


def _program(what: str, limit: float, item: Measurement | None) -> Target:
    if item is None:
        return Target(f"{what}, ours / C++", limit, None)
    return Target(f"{what}, ours / C++", limit, item.ratio, "", f"{item.cpu_ratio:.2f} by CPU")


def _files(items: Sequence[Measurement]) -> Target:
    """Return the target of programs in files, with the worst of them."""
    files = [item for item in items if item.is_file and item.ops > FILE_OPS]
    worst = max(files, key=lambda item: item.ratio, default=None)
    above = sum(item.ratio > 1 for item in files)
    what = f"each program in a file with more than {FILE_OPS} ops, ours / C++"
    if worst is None:
        return Target(what, 1.0, None)
    note = f"worst of {len(files)}: {worst.name}, {worst.cpu_ratio:.2f} by CPU; {above} above"
    return Target(what, 1.0, worst.ratio, "", note)


def _small(items: Sequence[Measurement]) -> Target:
    """Return the target of small programs, with the worst of them."""
    least, most = SMALL_OPS
    small = [item for item in items if least <= item.ops <= most]
    worst = max(small, key=lambda item: item.ratio, default=None)
    what = f"each program of {least} to {most} ops, ours / C++"
    if worst is None:
        return Target(what, 1.0, None)
    above = sum(item.ratio > 1 for item in small)
    note = f"worst of {len(small)}: {worst.name}, {worst.cpu_ratio:.2f} by CPU; {above} above"
    return Target(what, 1.0, worst.ratio, "", note)


def _unverified_files(items: Sequence[Measurement]) -> list[Target]:
    """Return the targets against the C++ passes without the verifier, by the sizes of programs."""
    large = [item for item in items if item.is_file and item.ops > FILE_OPS]
    small = [item for item in items if TINY_OPS <= item.ops <= FILE_OPS]
    what = f"programs in files with more than {FILE_OPS} ops"
    return [
        _unverified(f"each of the {what}", 1.3, large),
        _unverified(f"median of the {what}", 1.0, large, is_median=True),
        _unverified(f"each program of {TINY_OPS} to {FILE_OPS} ops", 1.5, small),
    ]


def _unverified(what: str, limit: float, items: Sequence[Measurement | None], *, is_median: bool = False) -> Target:
    """Return a target against the C++ passes without the verifier: on the worst of some programs, or on the median."""
    what = f"{what}, ours / C++ without verifier, by CPU"
    found = sorted([(item.unverified_ratio, item.name) for item in items if item is not None])
    if not found:
        return Target(what, limit, None)
    ratio, name = found[-1]
    above = sum(one > limit for one, _ in found)
    if is_median:
        return Target(what, limit, median(one for one, _ in found), "", f"of {len(found)}")
    return Target(what, limit, ratio, "", f"worst of {len(found)}: {name}; {above} above" if len(found) > 1 else "")


def _command(starts: Starts | None) -> Target:
    what = "shardy propagate FILE, ours / a script with the C++ passes"
    if starts is None:
        return Target(what, 1.5, None)
    note = f"{starts.command_seconds * 1000:.0f} and {starts.script_seconds * 1000:.0f} ms"
    return Target(what, 1.5, starts.command_seconds / starts.script_seconds, "", note)


def _one_op(fixed: FixedCosts | None) -> Target:
    what = "a program of one op, ours - C++"
    if fixed is None:
        return Target(what, 1.5, None, "ms")
    note = f"{fixed.ours * 1000:.2f} and {fixed.reference * 1000:.2f} ms"
    return Target(what, 1.5, (fixed.ours - fixed.reference) * 1000, "ms", note)


def _growth(small: Measurement | None, large: Measurement | None) -> Target:
    what = "growth of ours from 32 to 128 layers"
    if small is None or large is None:
        return Target(what, 4.3, None)
    note = f"{large.our_cpu_seconds / small.our_cpu_seconds:.2f} by CPU; {large.ops / small.ops:.2f} times the ops"
    return Target(what, 4.3, large.our_seconds / small.our_seconds, "", note)


def _again(item: Measurement | None, layers: int) -> Target:
    note = f"the slowest of {len(item.again.again)} schedules" if item and item.again else ""
    return Target(
        f"solving again, {layers} layers, share of the whole", 0.1, item.again_share if item else None, "", note
    )


def _import(starts: Starts | None) -> Target:
    if starts is None:
        return Target("import shardy_py", 150, None, "ms")
    note = f"from shardy_py import propagate: {starts.propagate_seconds * 1000:.0f} ms"
    return Target("import shardy_py", 150, starts.import_seconds * 1000, "ms", note)


def _equal(items: Sequence[Measurement]) -> Target:
    unequal = [item.name for item in items if not item.equal]
    measured = float(len(unequal)) if items else None
    return Target("programs with results unlike those of the C++ passes", 0, measured, "", ", ".join(unequal))


def format_targets(lines: Sequence[Target]) -> str:
    """Return the table as text."""
    width = max(len(line.what) for line in lines)
    return "\n".join(_format(line, width) for line in lines)


def _format(line: Target, width: int) -> str:
    unit = f" {line.unit}" if line.unit else ""
    measured = "-" if line.measured is None else f"{line.measured:.2f}"
    parts = (line.what.ljust(width), f"<= {line.limit:g}{unit}".rjust(13), measured.rjust(8), line.verdict)
    return "  ".join([*parts, *([f"({line.note})"] if line.note else [])])
