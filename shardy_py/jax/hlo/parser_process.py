"""The process of XLA's HLO parser, kept between texts: its start takes a hundred times as long as most of them.

It is started for the first text, and anew where it was idle for long, where a text ended it, and in a forked process.
A text that ends a process that has read others is read again in a new one: what is said of a text depends on no other.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import threading

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.support.processes.child import Child, ChildDied, ChildTimeout, find_cause, name_exit

SECONDS = 600.0
"""The time that a text may take."""
_WORKER = "shardy_py.jax.hlo.worker"


class ParserProcess:
    """A process that reads HLO text, one text at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None

    def convert(self, text: str, name: str) -> dict[str, str]:
        """Return the answer of the worker to HLO text; see `ask`."""
        return self.ask("convert", text.encode(), name)

    def ask(self, command: str, data: bytes, name: str) -> dict[str, str]:
        """Return the answer of the worker: a module, or XLA's error.

        Args:
            command: The name of the conversion; see `worker.py`.
            data: The module.
            name: What locations call it.

        Raises:
            ParseError: the text ends the process or uses up its time.
            UnsupportedError: jaxlib is missing, or no process can be started.
        """
        with self._lock:
            try:
                answer: dict[str, str] = json.loads(self._ask(f"{command}\n".encode() + data))
                return answer
            except ChildTimeout:
                message = f"XLA's parser did not end within {SECONDS:g} seconds"
                raise ParseError(Diagnostic("parser-timeout", message, name)) from None
            except ChildDied as error:
                raise _refuse(error, name) from None
            except OSError as error:
                message = f"the process that parses cannot be started: {error.strerror or error}"
                raise UnsupportedError(Diagnostic("no-process", message, name)) from None

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def forget(self) -> None:
        """Leave the process to the process that this one was forked from."""
        child, self._lock, self._child = self._child, threading.Lock(), None
        if child is not None:
            child.disown()

    def _ask(self, data: bytes) -> bytes:
        """Return the answer of the process, or of a new one where that which has answered others ends."""
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(ChildDied):
                answer = child.ask(data, seconds=SECONDS)
                self._child = child
                return answer
        child = Child(_WORKER)
        answer = child.ask(data, seconds=SECONDS)
        self._child = child
        return answer


def _refuse(end: ChildDied, name: str) -> ParseError | UnsupportedError:
    """Return the error that says why a process ended."""
    if "ModuleNotFoundError" in end.stderr and end.code == 1:
        message = "HLO input needs jaxlib, which cannot be imported"
        return UnsupportedError(Diagnostic("no-jaxlib", message, hint="pip install 'shardy_py[stablehlo]'"))
    cause = find_cause(end.stderr)
    reason = (cause.partition("] ")[2] or cause) if "Check failed" in cause else name_exit(end.code)
    return ParseError(Diagnostic("parser-aborted", f"XLA's parser aborts on this text: {reason}", name))


PARSER = ParserProcess()
atexit.register(PARSER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PARSER.forget)
