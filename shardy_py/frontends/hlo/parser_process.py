"""The process of XLA's HLO parser, kept between texts: its start takes a hundred times as long as most of them.

It is started for the first text, and anew where it was idle for long, where a text ended it, and in a forked process.
A text that ends a process that has read others is read again in a new one: what is said of a text depends on no other.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError

SECONDS = 600
"""The time that a text may take."""
_WORKER = Path(__file__).with_name("worker.py")


class _Ended(Exception):
    """The end of a process before its answer, with what it wrote to stderr."""

    def __init__(self, code: int, stderr: str) -> None:
        self.code, self.stderr = code, stderr


class _TimeUp(Exception):
    """The end of a process that was stopped because it took too long."""


class ParserProcess:
    """A process that reads HLO text, one text at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def convert(self, text: str, name: str) -> dict[str, str]:
        """Return the answer of the worker to HLO text; see `ask`."""
        return self.ask("convert", text.encode(), name)

    def ask(self, what: str, data: bytes, name: str) -> dict[str, str]:
        """Return the answer of the worker: a module, or XLA's error.

        Args:
            what: What it does; see `worker.py`.
            data: The module.
            name: What locations call it.

        Raises:
            ParseError: the text ends the process or uses up its time.
            UnsupportedError: jaxlib is missing.
        """
        with self._lock:
            try:
                return self._ask(b"%s %d\n" % (what.encode(), len(data)) + data)
            except _TimeUp:
                message = f"XLA's parser did not end within {SECONDS} seconds"
                raise ParseError(Diagnostic("parser-timeout", message, name)) from None
            except _Ended as end:
                raise _refused(end, name) from None

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, self._stderr):
            with contextlib.suppress(BrokenPipeError):  # a request that the process never read
                if pipe:
                    pipe.close()

    def forget(self) -> None:
        """Leave the process to the process that this one was forked from."""
        self._lock, self._process = threading.Lock(), None

    def _ask(self, request: bytes) -> dict[str, str]:
        """Return the answer of the process, or of a new one where that which has answered others ends."""
        if self._process is not None:
            with contextlib.suppress(_Ended):
                return self._answer(self._process, request)
        return self._answer(self._start(), request)

    def _start(self) -> subprocess.Popen[bytes]:
        self.close()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        command = [sys.executable, str(_WORKER)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr)
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], request: bytes) -> dict[str, str]:
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(SECONDS, stop)
        timer.daemon = True
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.flush()
            line = process.stdout.readline()
        except BaseException:  # an interrupt leaves half a message behind
            self.close()
            raise
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            answer: dict[str, str] = json.loads(line)
            return answer
        code, stderr = process.wait(), self._read_stderr()
        self.close()
        raise _TimeUp if is_late.is_set() else _Ended(code, stderr)

    def _read_stderr(self) -> str:
        assert self._stderr is not None
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def _refused(end: _Ended, name: str) -> ParseError | UnsupportedError:
    """Return the error that says why a process ended."""
    if "ModuleNotFoundError" in end.stderr and end.code == 1:
        message = "HLO input needs jaxlib, which cannot be imported"
        return UnsupportedError(Diagnostic("no-jaxlib", message, hint="pip install 'shardy_py[stablehlo]'"))
    lines = [line for line in end.stderr.splitlines() if "Check failed" in line]
    reason = f": {lines[0].partition('] ')[2] or lines[0]}" if lines else ""
    return ParseError(Diagnostic("parser-aborted", f"XLA's parser aborts on this text{reason}", name))


PARSER = ParserProcess()
atexit.register(PARSER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PARSER.forget)
