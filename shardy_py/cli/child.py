"""Requests to processes of their own, for work in which XLA may end the process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from shardy_py.cli.progress import ShowProgress, show_nothing
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.support.processes.child import ChildDied, ChildTimeout, ask_once
from shardy_py.support.processes.serve import serve


def ask_child(worker: str, request: Any, *, timeout: float, show: ShowProgress = show_nothing) -> Any:
    """Return the answer of another process to a request; both are pickled.

    Args:
        worker: The module that the process runs; its main function calls `answer_parent`.
        request: The request.
        timeout: The seconds after which it is ended.
        show: Called with the steps that the process reports.

    Raises:
        UnsupportedError: the process cannot be started, ended without an answer, or took too long.
    """
    try:
        return pickle.loads(ask_once(worker, pickle.dumps(request), seconds=timeout, show=show))
    except ChildTimeout:
        message = f"the program did not end within {timeout:g} seconds"
        raise UnsupportedError(Diagnostic("timeout", message, hint="give --timeout more seconds")) from None
    except ChildDied as error:
        hint = "compile the program without shardings to see whether XLA takes it at all"
        raise UnsupportedError(Diagnostic("xla-ended", f"XLA ended without a result: {error}", hint=hint)) from None
    except OSError as error:
        message = f"the process that runs the program cannot be started: {error.strerror or error}"
        raise UnsupportedError(Diagnostic("no-process", message)) from None


def answer_parent(answer: Callable[[Any, ShowProgress], Any]) -> None:
    """Answer the requests of the parent.

    Args:
        answer: Takes a request and what shows progress, which the other process does.
    """
    serve(lambda request, show: pickle.dumps(answer(pickle.loads(request), show)))
