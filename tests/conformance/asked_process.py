"""A process that is asked about one program after another: most of the time of a small one is the start of JAX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class AskedProcess:
    """A process that reads a question a line and answers each with a line of JSON; a new one where it has ended.

    Args:
        module: The module that it runs.
        flags: Flags of XLA besides those of the environment.
        seconds: The time that an answer may take.
    """

    def __init__(self, module: str, *, flags: str = "", seconds: float = 900.0) -> None:
        self._command = [sys.executable, "-m", module]
        flags = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
        self._environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: str) -> Any:
        """Return the answer to a question of one line.

        Raises:
            EOFError: the process ends before the answer, or uses up its time.
        """
        process = self._process = self._process or subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=self._environment,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            timer.cancel()
        if not answer:
            self.close()
            raise EOFError(f"the process ended with {process.returncode}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
