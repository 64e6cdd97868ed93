"""Both sides alternately, in one process, on copies of the same module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from attrs import frozen

from benchmarks.programs import Program
from benchmarks.runs import STAGES, Run, bytecode_of, copy_module, run_ours, run_reference
from shardy_py.frontends.mlir import parse_module, print_module
from shardy_py.testing.compare import compare


@frozen
class Measurement:
    """What both sides took for one program; times in seconds.

    Args:
        name: Of the program.
        ops: How many it has, nested ones included.
        ours: Our runs, in order.
        reference: Those of the C++ passes.
        unverified: One run of the C++ passes without MLIR's verifier between them, for orientation.
        equal: Whether both results are the same.
        difference: Where they first differ, or "".
    """

    name: str
    ops: int
    ours: tuple[Run, ...]
    reference: tuple[Run, ...]
    unverified: Run
    equal: bool
    difference: str = ""

    @property
    def our_seconds(self) -> float:
        """Our median."""
        return median(run.seconds for run in self.ours)

    @property
    def reference_seconds(self) -> float:
        """The median of the C++ passes."""
        return median(run.seconds for run in self.reference)

    @property
    def ratio(self) -> float:
        """Ours by theirs, of medians."""
        return self.our_seconds / self.reference_seconds

    @property
    def cpu_ratio(self) -> float:
        """The ratio by processor time."""
        return _cpu_median(self.ours) / _cpu_median(self.reference)

    @property
    def stages(self) -> dict[str, float]:
        """The median of each of our stages."""
        return {stage: median(run.stages.get(stage, 0.0) for run in self.ours) for stage in STAGES}


def measure(program: Program, *, alternations: int) -> Measurement:
    """Run both sides, one after the other, several times.

    Args:
        program: What to run.
        alternations: How often each side runs, after one run of each that is not counted and whose results are
            compared.
    """
    parsed = parse_module(program.make())
    context, bytecode = parsed.context, bytecode_of(parsed)
    ops = count_ops(parsed)
    del parsed

    def fresh() -> Any:
        return copy_module(bytecode, context)

    ours, theirs = fresh(), fresh()
    run_ours(ours)
    run_reference(theirs)
    comparison = compare(print_module(theirs), print_module(ours))
    del ours, theirs
    pairs = [(run_ours(fresh()), run_reference(fresh())) for _ in range(alternations)]
    return Measurement(
        program.name,
        ops,
        tuple(pair[0] for pair in pairs),
        tuple(pair[1] for pair in pairs),
        run_reference(fresh(), verify=False),
        comparison.equal,
        "" if comparison.equal else str(comparison),
    )


def measure_all(programs: Iterable[Program], *, alternations: int) -> Iterable[Measurement]:
    """Yield the measurements, one by one."""
    for program in programs:
        yield measure(program, alternations=alternations)


def count_ops(module: Any) -> int:
    """Return how many ops a native module has, nested ones included."""
    from jaxlib.mlir import ir

    count = 0

    def visit(op: object) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count


def _cpu_median(runs: Sequence[Run]) -> float:
    return median(run.cpu_seconds for run in runs)
