"""Runs of modules for replicas in a process of its own, as JAX counts its devices once, and XLA may end the process."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardy_py.crashes import describe_crash
from shardy_py.errors import Diagnostic, WorkerError
from shardy_py.targets.jax.unsharded import without_shardings
from shardy_py.targets.local.replicas import as_replicas

_WORKER = "shardy_py.targets.local.run_worker"


def run_in_child(bytecode: bytes, count: int, shards: Sequence[Any]) -> list[Any]:
    """Return the results of all devices, stacked by device.

    Args:
        bytecode: The module for replicas.
        count: The number of devices.
        shards: The arguments, stacked by device.

    Raises:
        WorkerError: XLA refuses the program, or ends its process.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "request"), Path(folder, "answer")
        asked.write_bytes(pickle.dumps((bytecode, count, shards)))
        done = subprocess.run(
            [sys.executable, "-m", _WORKER, str(asked), str(answered)], capture_output=True, text=True, check=False
        )
        if done.returncode or not answered.exists():
            reason = done.stderr.strip().splitlines()[-1:] if done.returncode > 0 else []
            message = reason[0] if reason else describe_crash(done.returncode, done.stderr)
            raise WorkerError(Diagnostic("local-run-failed", f"the local program did not run: {message}"))
        found: list[Any] = pickle.loads(answered.read_bytes())
        return found


def run_whole(module: Any, arrays: Sequence[Any]) -> list[Any]:
    """Return the results of a module without its shardings, on one host device.

    Args:
        module: What `to_module` takes, without manual computations; it stays as it is.
        arrays: One array per argument of the main function.

    Raises:
        WorkerError: XLA refuses the program, or ends its process.
    """
    import numpy

    bytecode = as_replicas(without_shardings(module))
    found = run_in_child(bytecode, 1, [numpy.asarray(array)[None] for array in arrays])
    return [parts[0] for parts in found]
