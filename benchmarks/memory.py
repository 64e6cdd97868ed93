"""Peak additional memory of a run; each run is a process of its own.

The process imports everything, runs its side once on a tiny module, parses the module, gives freed memory back to the
system, and notes its resident memory. Then the system forgets the peak so far (``/proc/self/clear_refs``), the side
runs, and the new peak (``VmHWM``) less what was noted is the result. On systems without these files the peak is
``ru_maxrss``, which includes that of parsing.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from benchmarks.runs import TINY, copy_module, run_ours, run_reference
from shardy_py.support.processes.child import describe_crash

Side = Literal["ours", "reference"]
_KIB = 1024
_FORGET_PEAK = "5"


@frozen
class Memory:
    """Additional resident memory of a run of each side, in bytes."""

    ours: int
    reference: int

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return self.ours / self.reference


class FailedRunError(Exception):
    """Failure of a process in which one side ran, with its reason."""


def measure_memory(bytecode: bytes) -> Memory:
    """Run both sides on a module, each in a process of its own.

    Raises:
        FailedRunError: one of the processes fails; the C++ passes abort on some modules.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.mlirbc"
        path.write_bytes(bytecode)
        return Memory(_in_child("ours", path), _in_child("reference", path))


def _in_child(side: Side, path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", side, str(path)],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise FailedRunError(f"{side}: {describe_crash(done.returncode, done.stderr)}")
    return int(json.loads(done.stdout))


def added_memory(side: Side, path: Path) -> int:
    """Return the peak memory that one run adds to this process, in bytes."""
    from shardy_py.frontends.mlir import parse_module
    from shardy_py.frontends.mlir.context import make_context

    run: Callable[[Any], object] = run_ours if side == "ours" else run_reference
    run(parse_module(TINY))
    module = copy_module(path.read_bytes(), make_context())
    gc.collect()
    _trim()
    before = _resident("VmRSS") or peak_memory()
    _forget_peak()
    run(module)
    return peak_memory() - before


def _trim() -> None:
    """Give freed memory back, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _forget_peak() -> None:
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text(_FORGET_PEAK)


def _resident(name: str) -> int:
    """Return a field of the process's status in bytes, or 0."""
    file = Path("/proc/self/status")
    lines = file.read_text().splitlines() if file.exists() else []
    return next((int(line.split()[1]) * _KIB for line in lines if line.startswith(f"{name}:")), 0)


def peak_memory() -> int:
    """Return the most resident memory that this process has had, in bytes."""
    if highest := _resident("VmHWM"):
        return highest
    # What the process that started this one had counts, too.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIB


if __name__ == "__main__":
    print(json.dumps(added_memory("ours" if sys.argv[1] == "ours" else "reference", Path(sys.argv[2]))))
