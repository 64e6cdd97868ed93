"""The program that each device runs."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from attrs import frozen

from shardy_py.crashes import describe_crash
from shardy_py.errors import Diagnostic, OptionError, WorkerError, require_library
from shardy_py.frontends.mlir import print_module
from shardy_py.ir.graph import Program
from shardy_py.targets.local.port import Port
from shardy_py.targets.local.replicas import as_replicas

_WORKER = "shardy_py.targets.local.run_worker"


@frozen(slots=False, eq=False)
class LocalProgram:
    """The program that each device runs, on its shards.

    Attributes:
        module: The native module, with partition ids, and groups of devices in its collectives.
        program: Its op graph; values have the shardings of the global ones.
        device_count: The number of devices.
        arguments: The arguments of the main function.
        results: Its results.
        warnings: The ops that run on gathered operands.
    """

    module: Any
    program: Program
    device_count: int
    arguments: tuple[Port, ...]
    results: tuple[Port, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @cached_property
    def text(self) -> str:
        """The module as MLIR text."""
        return print_module(self.module)

    def run(self, *arrays: Any) -> list[Any]:
        """Run the program on host devices of JAX, in a process of its own.

        No partitioner is involved: each device runs the text as a replica.

        Args:
            arrays: One global array per argument of the main function.

        Returns:
            The global results, as arrays of numpy.

        Raises:
            OptionError: an array is missing, or has another shape or dtype.
            UnsupportedError: two devices have different values of the same part of a result.
            WorkerError: XLA refuses the program, or ends its process.
        """
        require_library("jax", purpose="running a local program needs", extra="jax")
        if len(arrays) != len(self.arguments):
            message = f"the program has {len(self.arguments)} arguments, given are {len(arrays)}"
            raise OptionError(Diagnostic("argument-count", message, hint="give one global array per argument"))
        pairs = enumerate(zip(self.arguments, arrays, strict=True))
        shards = [port.split(array, self.device_count, number) for number, (port, array) in pairs]
        found = _run_in_child((self._replicas, self.device_count, shards))
        return [port.join(parts, number) for number, (port, parts) in enumerate(zip(self.results, found, strict=True))]

    @cached_property
    def _replicas(self) -> bytes:
        return as_replicas(self.module)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<LocalProgram for {self.device_count} devices>"


def _run_in_child(request: Any) -> Sequence[Any]:
    """Return the results of all devices, stacked by device."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "request"), Path(folder, "answer")
        asked.write_bytes(pickle.dumps(request))
        done = subprocess.run(
            [sys.executable, "-m", _WORKER, str(asked), str(answered)], capture_output=True, text=True, check=False
        )
        if done.returncode or not answered.exists():
            reason = done.stderr.strip().splitlines()[-1:] if done.returncode > 0 else []
            message = reason[0] if reason else describe_crash(done.returncode, done.stderr)
            raise WorkerError(Diagnostic("local-run-failed", f"the local program did not run: {message}"))
        found: Sequence[Any] = pickle.loads(answered.read_bytes())
        return found
