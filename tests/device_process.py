"""A process with host devices that runs one local program after the other, as each start of JAX takes seconds."""

from __future__ import annotations

import os
import pickle

from shardy_py.jax.host import use_devices
from shardy_py.jax.local import child
from shardy_py.jax.local.run_worker import run
from shardy_py.support.processes.child import Child, ChildError
from shardy_py.support.processes.serve import ShowStep, serve
from tests.xla_flags import QUICK_CODE

DEVICES = 8
"""The number of its devices; a program for fewer takes the first ones."""


class DeviceProcess:
    """Starts the process for the first program, and another one where it has ended."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._ask_once = child.ask_once

    def ask(self, worker: str, request: bytes, *, seconds: float) -> bytes:
        """Return what a process would answer that is started for one request.

        Raises:
            ChildError: there is no answer.
        """
        if pickle.loads(request)[1] > DEVICES:
            return self._ask_once(worker, request, seconds=seconds)
        self._child = self._child or Child(__name__)
        try:
            return self._child.ask(request, seconds=seconds)
        except ChildError:
            self._child = None
            raise

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()


def main() -> None:
    """Run the programs that the parent sends, each on its shards."""
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK_CODE}"
    use_devices(DEVICES)
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    return pickle.dumps(run(*pickle.loads(request)))
