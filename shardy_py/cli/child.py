"""Requests to processes of their own, for work in which XLA may end the process."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shardy_py.cli.progress import ShowProgress, show_nothing
from shardy_py.crashes import describe_crash
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.orphans import end_with_parent

_REQUEST, _ANSWER, _STEPS = "request", "answer", "steps"
_PAUSE = 0.1
"""The seconds between two looks at the steps of the other process."""


def ask_child(worker: str, request: Any, *, timeout: float, show: ShowProgress = show_nothing) -> Any:
    """Return the answer of another process to a request; both are pickled.

    Args:
        worker: The module that the process runs; its main function calls `answer_parent`.
        request: The request.
        timeout: The seconds after which it is ended.
        show: Called with the steps that the process reports.

    Raises:
        UnsupportedError: the process ended without an answer, or took too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, _REQUEST)
        path.write_bytes(pickle.dumps(request))
        returncode, stderr = _run([sys.executable, "-m", worker, str(path)], timeout, path.with_name(_STEPS), show)
        if returncode:
            message = f"XLA ended without a result: {describe_crash(returncode, stderr)}"
            hint = "compile the program without shardings to see whether XLA takes it at all"
            raise UnsupportedError(Diagnostic("xla-ended", message, hint=hint))
        return pickle.loads(Path(folder, _ANSWER).read_bytes())


def _run(command: list[str], timeout: float, steps: Path, show: ShowProgress) -> tuple[int, str]:
    """Run a process and show its steps; return its exit code, and what it wrote to standard error."""
    end = time.monotonic() + timeout
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        try:
            while True:
                left = end - time.monotonic()
                try:
                    _, stderr = process.communicate(timeout=max(0.0, min(_PAUSE, left)))
                    return process.returncode, stderr
                except subprocess.TimeoutExpired:
                    if left <= 0:
                        message = f"the program did not end within {timeout:g} seconds"
                        hint = "give --timeout more seconds"
                        raise UnsupportedError(Diagnostic("timeout", message, hint=hint)) from None
                _show_last(steps, show)
        except BaseException:
            process.kill()
            raise


def _show_last(steps: Path, show: ShowProgress) -> None:
    """Show the last step in a file; its last line may not be whole yet."""
    lines = steps.read_text(encoding="utf-8").split("\n")[:-1] if steps.exists() else []
    if lines:
        show(*json.loads(lines[-1]))


def answer_parent(answer: Callable[[Any, ShowProgress], Any]) -> None:
    """Answer the request in the file that is named on the command line, in a file beside it.

    Args:
        answer: Takes the request and what shows progress, which the other process does.
    """
    end_with_parent()
    path = Path(sys.argv[1])
    with path.with_name(_STEPS).open("w", encoding="utf-8") as steps:

        def report(done: int, total: int | None, what: str = "") -> None:
            steps.write(f"{json.dumps([done, total, what])}\n")
            steps.flush()

        done = answer(pickle.loads(path.read_bytes()), report)
    path.with_name(_ANSWER).write_bytes(pickle.dumps(done))
