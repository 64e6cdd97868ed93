"""Both sides alternately, in one process, on copies of the same module; the C++ with and without the verifier."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from attrs import frozen

from benchmarks.memory import FailedRunError, Memory, measure_memory
from benchmarks.programs import Program
from benchmarks.runs import (
    STAGES,
    Run,
    bytecode_of,
    copy_module,
    forget_tables,
    give_new_tables,
    run_ours,
    run_reference,
)
from benchmarks.solve_again import SolvedAgain, solve_again
from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir import parse_module, print_module
from shardy_py.oracle.compare import compare

MANY = 25
"""Default upper bound on the runs of each side."""


@frozen
class Settings:
    """Settings of a measurement.

    Args:
        alternations: How often each side runs at least, besides one run of each whose results are compared.
        passes: Whether each of our passes is timed, in runs of their own.
        seconds: Programs that take little time run on until so many seconds have passed, `MANY` times at most.
        min_ops: Programs in files with fewer ops are left out.
        memory: Whether memory is measured.
        again: Whether solving again is.
    """

    alternations: int = 5
    min_ops: int = 0
    memory: bool = True
    again: bool = True
    passes: bool = False
    seconds: float = 4.0


@frozen
class Skipped:
    """A program that was left out."""

    name: str
    reason: str


@frozen
class Unverified:
    """Runs that follow each other, neither side verifying.

    Args:
        ours: Ours on a module whose bytecode has tables like no module before, as one with other locations has.
        again: Ours on a module with the same tables as in every round.
        reference: The C++ passes.
    """

    ours: Run
    again: Run
    reference: Run


@frozen
class Measurement:
    """Times of both sides for one program, in seconds.

    Args:
        name: Of the program.
        is_file: Whether it came from a file.
        ops: How many it has, nested ones and the module included.
        first: Our first run, without MLIR's verifier, when nothing is remembered of the program.
        ours: Our runs, in order.
        reference: Those of the C++ passes.
        unverified: Runs of both sides without MLIR's verifier, between the others.
        difference: Where both results first differ, or "" for equal ones.
        memory: The additional memory of either side.
        again: The times of solving, and of solving again.
        by_pass: Our runs in which each pass was timed.
    """

    name: str
    is_file: bool
    ops: int
    first: Run
    ours: tuple[Run, ...]
    reference: tuple[Run, ...]
    unverified: tuple[Unverified, ...]
    difference: str = ""
    memory: Memory | None = None
    again: SolvedAgain | None = None
    by_pass: tuple[Run, ...] = ()

    @property
    def equal(self) -> bool:
        """True if both results are the same."""
        return not self.difference

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
        """The median over all alternations of ours by theirs.

        The runs of one alternation follow each other, so that a machine that is slow for a while is so for both.
        """
        return median(ours.seconds / other.seconds for ours, other in zip(self.ours, self.reference, strict=True))

    @property
    def unverified_seconds(self) -> float:
        """The median of the C++ passes without the verifier."""
        return median(runs.reference.seconds for runs in self.unverified)

    @property
    def our_unverified_seconds(self) -> float:
        """Our median without the verifier, on modules with new tables."""
        return median(runs.ours.seconds for runs in self.unverified)

    @property
    def unverified_ratio(self) -> float:
        """The median over all alternations of ours, with new tables, by theirs; unverified, by processor time."""
        return median(runs.ours.cpu_seconds / runs.reference.cpu_seconds for runs in self.unverified)

    @property
    def repeated_ratio(self) -> float:
        """The same for modules that come again with the same tables."""
        return median(runs.again.cpu_seconds / runs.reference.cpu_seconds for runs in self.unverified)

    @property
    def first_ratio(self) -> float:
        """Our first run by the median of theirs; unverified, by processor time."""
        return self.first.cpu_seconds / median(runs.reference.cpu_seconds for runs in self.unverified)

    @property
    def our_cpu_seconds(self) -> float:
        """Our median by processor time."""
        return median(run.cpu_seconds for run in self.ours)

    @property
    def cpu_ratio(self) -> float:
        """The ratio by processor time."""
        pairs = zip(self.ours, self.reference, strict=True)
        return median(ours.cpu_seconds / other.cpu_seconds for ours, other in pairs)

    @property
    def again_share(self) -> float | None:
        """The longest of solving again with another schedule, by our median of the whole."""
        return None if self.again is None else max(self.again.again.values()) / self.our_seconds

    @property
    def passes(self) -> dict[str, float]:
        """The median of each of our passes, in the order in which they ran."""
        names = self.by_pass[0].passes if self.by_pass else ()
        return {name: median(run.passes[name] for run in self.by_pass) for name in names}

    @property
    def stages(self) -> dict[str, float]:
        """The median of each of our stages."""
        return {stage: median(run.stages.get(stage, 0.0) for run in self.ours) for stage in STAGES}


def measure(program: Program, settings: Settings) -> Measurement | Skipped:
    """Run both sides on a program, one after the other, several times."""
    from jaxlib.mlir import ir

    try:
        parsed = parse_module(program.make())
    except ShardyError as error:
        return Skipped(program.name, f"the module is not valid: {error}")
    ops = count_ops(parsed)
    if program.is_file and ops < settings.min_ops:
        return Skipped(program.name, f"{ops} ops, fewer than {settings.min_ops}")
    context, bytecode = parsed.context, bytecode_of(parsed)
    del parsed

    def fresh() -> Any:
        return copy_module(bytecode, context)

    theirs = fresh()
    try:
        # First in processes of their own: where the C++ passes abort, that ends the process.
        memory = measure_memory(bytecode) if settings.memory else None
        run_reference(theirs)
    except (FailedRunError, ir.MLIRError) as error:
        return Skipped(program.name, f"a run fails: {str(error).splitlines()[0]}")
    first, difference = _first(fresh(), theirs)
    del theirs
    ours, reference, unverified = zip(*_alternate(fresh, settings), strict=True)
    return Measurement(
        program.name,
        program.is_file,
        ops,
        first,
        ours,
        reference,
        unverified,
        difference,
        memory,
        solve_again(fresh) if settings.again else None,
        tuple([run_ours(fresh(), by_pass=True) for _ in range(settings.alternations if settings.passes else 0)]),
    )


def count_ops(module: Any) -> int:
    """Return how many ops a native module has, nested ones and itself included."""
    from jaxlib.mlir import ir

    count = 0

    def visit(op: object) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return count


def _first(ours: Any, theirs: Any) -> tuple[Run, str]:
    """Run ours; return its times and the difference of its result from theirs."""
    run = run_ours(ours, verify=False)
    comparison = compare(print_module(theirs), print_module(ours))
    return run, "" if comparison.equal else str(comparison)


def _alternate(fresh: Callable[[], Any], settings: Settings) -> list[tuple[Run, Run, Unverified]]:
    """Return the runs of both sides in turn; of short ones there are more, as they are disturbed more easily."""
    rounds: list[tuple[Run, Run, Unverified]] = []
    forget_tables()
    begin = perf_counter()
    while len(rounds) < settings.alternations or (len(rounds) < MANY and perf_counter() - begin < settings.seconds):
        unverified = Unverified(
            run_ours(give_new_tables(fresh(), len(rounds)), verify=False),
            run_ours(fresh(), verify=False),
            run_reference(fresh(), verify=False),
        )
        rounds.append((run_ours(fresh()), run_reference(fresh()), unverified))
    return rounds
