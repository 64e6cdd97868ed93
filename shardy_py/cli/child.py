"""Requests to processes of their own, for work in which XLA may end the process."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shardy_py.crashes import describe_crash
from shardy_py.errors import Diagnostic, UnsupportedError

_REQUEST, _ANSWER = "request", "answer"


def ask_child(worker: str, request: Any, *, timeout: float) -> Any:
    """Return the answer of another process to a request; both are pickled.

    Args:
        worker: The module that the process runs; its main function calls `answer_parent`.
        request: The request.
        timeout: The seconds after which it is ended.

    Raises:
        UnsupportedError: the process ended without an answer, or took too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, _REQUEST)
        path.write_bytes(pickle.dumps(request))
        command = [sys.executable, "-m", worker, str(path)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            message = f"the program did not end within {timeout:g} seconds"
            raise UnsupportedError(Diagnostic("timeout", message, hint="give --timeout more seconds")) from None
        if done.returncode:
            message = f"XLA ended without a result: {describe_crash(done.returncode, done.stderr)}"
            hint = "compile the program without shardings to see whether XLA takes it at all"
            raise UnsupportedError(Diagnostic("xla-ended", message, hint=hint))
        return pickle.loads(Path(folder, _ANSWER).read_bytes())


def answer_parent(answer: Callable[[Any], Any]) -> None:
    """Answer the request in the file that is named on the command line, in a file beside it."""
    path = Path(sys.argv[1])
    done = answer(pickle.loads(path.read_bytes()))
    path.with_name(_ANSWER).write_bytes(pickle.dumps(done))
