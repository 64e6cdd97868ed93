"""Runs that have processes of their own: a sweep over many schedules, and a program as large as one likes.

What takes minutes is measured only where it is asked for, once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

from attrs import asdict, frozen

from benchmarks.memory import peak_memory
from benchmarks.programs import Program
from benchmarks.runs import TINY, bytecode_of, copy_module, run_ours
from shardy_py.cost.sweeps.comparison import compare_schedules
from shardy_py.frontends.mlir import parse_module
from shardy_py.frontends.mlir.context import make_context

SWEPT = "hf_llama16_train"
"""The program of sweeps, a file of the conformance corpus: 13,621 ops once it is prepared."""
JOBS = 2
_MACHINE = "h100-2x8"
_OPS_OF_NO_LAYER, _OPS_OF_LAYER = 273, 431
"""Ops of a GPT's training step: outside of its layers, and for each of them."""


@frozen
class SweptSchedules:
    """A sweep over random schedules, in two processes.

    Args:
        schedules: How many.
        seconds: From the text of the program to all rows, by the clock.
        cpu_seconds: Of all processes together.
    """

    schedules: int
    seconds: float
    cpu_seconds: float


@frozen
class LargeRun:
    """A run on a large program.

    Args:
        ops: How many the program has.
        seconds: Of processor time, neither side verifying.
        peak_bytes: The most memory of the process, with the module in it.
    """

    ops: int
    seconds: float
    peak_bytes: int


def measure_sweep(programs: Iterable[Program], schedules: int) -> SweptSchedules | None:
    """Compare random schedules of the program of sweeps; None if it is not among the programs."""
    text = next((program.make() for program in programs if program.name == SWEPT), None)
    if text is None:
        return None
    cpu, begin = _cpu_seconds(), perf_counter()
    compare_schedules(text, random=schedules, machine=_MACHINE, jobs=JOBS)
    seconds = perf_counter() - begin
    _end_workers()
    return SweptSchedules(schedules, seconds, _cpu_seconds() - cpu)


def _end_workers() -> None:
    """End the processes that joblib keeps for the next call, so that their processor time is known."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _cpu_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def measure_large(ops: int) -> LargeRun:
    """Propagate in the training step of a GPT with at least so many ops.

    One process makes the program and another one runs it, so that the memory of the first does not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.mlirbc"
        _in_child("make", str(path), str(max(1, -(-(ops - _OPS_OF_NO_LAYER) // _OPS_OF_LAYER))))
        return LargeRun(**json.loads(_in_child("run", str(path))))


def _in_child(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.processes", *arguments]
    folder = Path(__file__).resolve().parents[1]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def _make(path: Path, layers: int) -> None:
    from benchmarks.programs.gpt import gpt_step

    path.write_bytes(bytecode_of(parse_module(gpt_step(layers))))


def _run(path: Path) -> LargeRun:
    from benchmarks.measure import count_ops

    run_ours(parse_module(TINY))
    module = copy_module(path.read_bytes(), make_context())
    ops = count_ops(module)
    seconds = run_ours(module, verify=False).cpu_seconds
    return LargeRun(ops, seconds, peak_memory())


if __name__ == "__main__":
    if sys.argv[1] == "make":
        _make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(asdict(_run(Path(sys.argv[2])))))
