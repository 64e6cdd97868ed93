"""Runs of modules for replicas in a process of its own, as JAX counts its devices once, and XLA may end the process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, WorkerError
from shardy_py.jax.local.replicas import as_replicas
from shardy_py.jax.unsharded import without_shardings
from shardy_py.support.processes.child import ChildDied, ChildError, ask_once, find_cause

SECONDS = 3600.0
"""The time that XLA may take to compile and run a program."""
_WORKER = "shardy_py.jax.local.run_worker"


def run_in_child(bytecode: bytes, count: int, shards: Sequence[Any]) -> list[Any]:
    """Return the results of all devices, stacked by device.

    Args:
        bytecode: The module for replicas.
        count: The number of devices.
        shards: The arguments, stacked by device.

    Raises:
        WorkerError: XLA refuses the program, ends its process, or takes too long.
    """
    request = pickle.dumps((bytecode, count, shards))
    try:
        results: list[Any] = pickle.loads(ask_once(_WORKER, request, seconds=SECONDS))
    except ChildError as error:
        # An exit code says no more than the error that led to it.
        has_error = isinstance(error, ChildDied) and error.code > 0
        reason = (find_cause(error.stderr) if has_error else "") or str(error)
        raise WorkerError(Diagnostic("local-run-failed", f"the local program did not run: {reason}")) from None
    return results


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
    results = run_in_child(bytecode, 1, [numpy.asarray(array)[None] for array in arrays])
    return [parts[0] for parts in results]
