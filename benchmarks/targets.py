"""Targets of the benchmarks, with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from attrs import frozen

from benchmarks.fixed_costs import FixedCosts
from benchmarks.measure import Measurement
from benchmarks.processes import LargeRun, SweptSchedules
from benchmarks.starts import Starts

FILE_OPS = 500
"""Programs in files are large from so many ops on; smaller ones are small programs."""
SMALL_OPS = (50, 500)
"""Smallest and largest number of ops of small programs."""
VERIFIED_OPS = 100
"""Smallest number of ops of the programs that are compared with the C++ passes as they come, with the verifier."""
MILLION = 1_000_000
SWEPT_SCHEDULES = 1000

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


@frozen
class Measured:
    """Everything that targets are about; what was not measured is None.

    Args:
        items: The programs.
        starts: The times until something happens.
        fixed: The fixed costs of a program of one op.
        sweep: A sweep over schedules.
        large: A run on a large program.
    """

    items: Sequence[Measurement] = ()
    starts: Starts | None = None
    fixed: FixedCosts | None = None
    sweep: SweptSchedules | None = None
    large: LargeRun | None = None


def targets(measured: Measured) -> list[Target]:
    """Return all targets with the measured values; ratios are ours / C++ without the verifier, by processor time."""
    items = measured.items
    made = {item.name: item for item in items if not item.is_file}
    small, large = made.get("gpt-32"), made.get("gpt-128")
    memory = large.memory if large is not None else None
    return [
        _one("GPT of 32 layers", 0.65, small),
        _one("GPT of 128 layers", 0.65, large),
        *_by_size(items),
        _one("10,000 ops, no two alike", 1.25, made.get("distinct")),
        Target("peak additional memory, GPT of 128 layers", 0.8, memory.ratio if memory else None),
        _command(measured.starts),
        _sweep(measured.sweep),
        *_large(measured.large),
        _equal(items),
        _verified(items),
        _one_op(measured.fixed),
        _growth(small, large),
        *(_solved_again(item, layers) for item, layers in ((small, 32), (large, 128))),
        *_starts(measured.starts),
    ]


def _one(what: str, limit: float, item: Measurement | None) -> Target:
    """Return the target of one program."""
    if item is None:
        return Target(what, limit, None)
    note = f"{item.repeated_ratio:.2f} where it comes again, {item.ratio:.2f} with the verifier"
    return Target(what, limit, item.unverified_ratio, "", note)


def _by_size(items: Sequence[Measurement]) -> list[Target]:
    """Return the targets of programs by their numbers of ops: each, and the median, of large and of small ones."""
    large = [item for item in items if item.is_file and item.ops > FILE_OPS]
    small = [item for item in items if SMALL_OPS[0] <= item.ops <= SMALL_OPS[1]]
    first = f"; median of first runs {median(item.first_ratio for item in small):.2f}" if small else ""
    return [
        *_each_and_median(f"programs in files with more than {FILE_OPS} ops", (1.3, 0.85), _ratios(large)),
        *_each_and_median("programs of {} to {} ops".format(*SMALL_OPS), (1.9, 1.3), _ratios(small), note=first),
        *_each_and_median(
            "the same where they come again, with the same tables",
            (1.4, 1.0),
            [(item.repeated_ratio, item.name) for item in small],
        ),
    ]


def _ratios(items: Sequence[Measurement]) -> list[tuple[float, str]]:
    return [(item.unverified_ratio, item.name) for item in items]


def _each_and_median(
    what: str, limits: tuple[float, float], ratios: Sequence[tuple[float, str]], *, note: str = ""
) -> list[Target]:
    """Return the target of the worst program and that of the median."""
    if not ratios:
        return [Target(f"{what}: each", limits[0], None), Target(f"{what}: median", limits[1], None)]
    worst, name = max(ratios)
    above = sum(ratio > limits[0] for ratio, _ in ratios)
    middle = median(ratio for ratio, _ in ratios)
    return [
        Target(f"{what}: each", limits[0], worst, "", f"worst of {len(ratios)}: {name}; {above} above"),
        Target(f"{what}: median", limits[1], middle, "", f"of {len(ratios)}{note}"),
    ]


def _command(starts: Starts | None) -> Target:
    what = "shardy propagate, the whole process"
    if starts is None:
        return Target(what, 1.5, None)
    times = f"{starts.command_seconds * 1000:.0f} and {starts.script_seconds * 1000:.0f} ms"
    return Target(what, 1.5, starts.cpu_ratio, "", f"{times} by the clock")


def _sweep(sweep: SweptSchedules | None) -> Target:
    """Return the target of a sweep; one over fewer schedules is a note."""
    what = f"{SWEPT_SCHEDULES:,} schedules of 13,621 ops, two processes"
    if sweep is None:
        return Target(what, 45, None, "s")
    measured = sweep.seconds if sweep.schedules >= SWEPT_SCHEDULES else None
    note = f"{sweep.schedules:,} schedules: {sweep.seconds:.1f} s, {sweep.cpu_seconds:.1f} s of processor time"
    return Target(what, 45, measured, "s", note)


def _large(large: LargeRun | None) -> list[Target]:
    """Return the targets of a large program; a smaller one is a note."""
    what, memory = "a million ops", "a million ops, memory of the process"
    if large is None:
        return [Target(what, 60, None, "s"), Target(memory, 10, None, "GiB")]
    note, gibibytes = f"{large.ops:,} ops: {large.seconds:.1f} s", large.peak_bytes / 1024**3
    is_million = large.ops >= MILLION
    return [
        Target(what, 60, large.seconds if is_million else None, "s", note),
        Target(memory, 10, gibibytes if is_million else None, "GiB", f"{large.ops:,} ops: {gibibytes:.2f} GiB"),
    ]


def _equal(items: Sequence[Measurement]) -> Target:
    unequal = [item.name for item in items if not item.equal]
    measured = float(len(unequal)) if items else None
    return Target("programs with results unlike those of the C++ passes", 0, measured, "", ", ".join(unequal))


def _verified(items: Sequence[Measurement]) -> Target:
    """Return the target of the C++ passes as they come, by the clock."""
    ratios = [(item.ratio, item.name) for item in items if item.ops >= VERIFIED_OPS]
    return _each_and_median(f"programs of {VERIFIED_OPS} ops and more, with MLIR's verifier", (1.0, 1.0), ratios)[0]


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
    note = f"{large.ops / small.ops:.2f} times the ops"
    return Target(what, 4.3, large.our_cpu_seconds / small.our_cpu_seconds, "", note)


def _solved_again(item: Measurement | None, layers: int) -> Target:
    note = f"the slowest of {len(item.again.again)} schedules" if item and item.again else ""
    share = item.again_share if item else None
    return Target(f"solving again, {layers} layers, share of the whole", 0.1, share, "", note)


def _starts(starts: Starts | None) -> list[Target]:
    if starts is None:
        return [Target("import shardy_py", 150, None, "ms"), Target("shardy --help", 400, None, "ms")]
    note = f"from shardy_py import propagate: {starts.propagate_seconds * 1000:.0f} ms"
    return [
        Target("import shardy_py", 150, starts.import_seconds * 1000, "ms", note),
        Target("shardy --help", 400, starts.help_seconds * 1000, "ms"),
    ]


def format_targets(lines: Sequence[Target]) -> str:
    """Return the table as text."""
    width = max(len(line.what) for line in lines)
    return "\n".join(_format(line, width) for line in lines)


def _format(line: Target, width: int) -> str:
    unit = f" {line.unit}" if line.unit else ""
    measured = "-" if line.measured is None else f"{line.measured:.2f}"
    parts = (line.what.ljust(width), f"<= {line.limit:g}{unit}".rjust(13), measured.rjust(8), line.verdict)
    return "  ".join([*parts, *([f"({line.note})"] if line.note else [])])
