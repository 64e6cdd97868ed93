"""Answers of child processes that run local programs, a JSON object a line; a new one goes on where one ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from queue import Empty, Queue
from threading import Thread
from typing import Any

SECONDS = 180.0
"""The time that one program may take."""
FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""XLA compiles everything without optimizations, as these take most of the time."""


def answers(module: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what child processes say about programs; where one ends early, that program has crashed.

    Args:
        module: The module that the child runs; it says ``start`` with an argument before, and ``name`` with it after.
        arguments: An argument per program.
    """
    left = list(arguments)
    while left:
        current: str | None = None
        for answer in _lines(module, left):
            if "start" in answer:
                current = answer["start"]
                continue
            yield answer
            left, current = left[left.index(answer["name"]) + 1 :], None
        if left:
            crashed = current or left[0]
            yield {"name": crashed, "status": "crash"}
            left = left[left.index(crashed) + 1 :]


def _lines(module: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    environment = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as child:
        lines: Queue[str | None] = Queue()

        def read() -> None:
            for line in child.stdout or ():
                lines.put(line)
            lines.put(None)

        Thread(target=read, daemon=True).start()
        try:
            while (line := lines.get(timeout=SECONDS)) is not None:
                if line.startswith("{"):
                    yield json.loads(line)
        except Empty:
            pass
        finally:
            child.kill()
