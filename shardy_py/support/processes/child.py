"""Start a process that answers requests of this one within a time limit, and describe how it died."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import tempfile
import threading
import time
from types import TracebackType
from typing import IO, Self

from shardy_py.support.processes.serve import ANSWER, STEP, ShowStep, receive, send_request
from shardy_py.support.processes.start import start_worker
from shardy_py.support.termination import unwind_on_termination

_PATIENCE = 10.0
"""The seconds that a process without pipes may take to end."""


class ChildError(Exception):
    """A process that gave no answer.

    Attributes:
        stderr: What it wrote to standard error.
    """

    def __init__(self, message: str, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


class ChildDied(ChildError):
    """A process that ended before its answer.

    Attributes:
        code: Its exit code, negative for a signal.
    """

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(describe_crash(code, stderr), stderr)
        self.code = code


class ChildTimeout(ChildError):
    """A process that was ended because it took too long."""

    def __init__(self, seconds: float, stderr: str) -> None:
        super().__init__(f"no answer within {seconds:g} seconds", stderr)


class Child:
    """A process that runs a worker, and answers one request after the other; a context manager.

    It has no files: requests and answers go through pipes, so that no signal can leave one behind.

    Args:
        worker: The module whose function ``main`` the process runs; it calls `shardy_py.support.processes.serve.serve`.
        python: Another interpreter than that of this process.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, worker: str, *, python: str = "") -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process; it has no name)
        try:
            self._process: subprocess.Popen[bytes] = start_worker(worker, stderr=self._stderr, python=python)
        except BaseException:
            self._stderr.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ask(self, request: bytes, *, seconds: float, show: ShowStep | None = None) -> bytes:
        """Return the answer to a request. Without one the process is ended.

        Args:
            request: The request.
            seconds: The time that the answer may take.
            show: Called with the steps that the process reports.

        Raises:
            ChildDied: the process ended.
            ChildTimeout: the time is over.
        """
        is_late = threading.Event()
        end = time.monotonic() + seconds

        def stop() -> None:
            is_late.set()
            self._process.kill()

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), stop)
        timer.daemon = True
        timer.start()
        try:
            with unwind_on_termination():
                try:
                    answer = self._exchange(request, seconds, show)
                except BaseException:  # what is left of a message is not an answer to the next request
                    self.close()
                    raise
        finally:
            timer.cancel()
        if answer is not None and time.monotonic() <= end:
            return answer
        if answer is not None:
            # The answer came before the timer, whose thread may get its turn late.
            is_late.set()
        if not is_late.is_set():
            # The pipe may be closed a little before the process ends.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_PATIENCE)
        self._process.kill()
        code, stderr = self._process.wait(), self.take_stderr()
        self.close()
        raise ChildTimeout(seconds, stderr) if is_late.is_set() else ChildDied(code, stderr)

    def take_stderr(self) -> str:
        """Return what the process has written to standard error since the last call."""
        self._stderr.seek(0)
        text = self._stderr.read().decode("utf-8", "replace")
        if text:
            self._stderr.seek(0)
            self._stderr.truncate()
        return text

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self.disown()

    def disown(self) -> None:
        """Leave the process to another owner of its pipes, such as the parent of a fork."""
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            with contextlib.suppress(BrokenPipeError):  # a request that the process never read
                if pipe is not None:
                    pipe.close()

    def _exchange(self, request: bytes, seconds: float, show: ShowStep | None) -> bytes | None:
        """Send a request and return the answer; None where the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            send_request(self._process.stdin, request, seconds)
        while True:
            kind = self._process.stdout.read(1)
            message = receive(self._process.stdout)
            if kind not in (STEP, ANSWER) or message is None:
                return None
            if kind == ANSWER:
                return message
            if show is not None:
                show(*json.loads(message))


def ask_once(worker: str, request: bytes, *, seconds: float, show: ShowStep | None = None) -> bytes:
    """Return the answer of a process that is started for one request, and ended after it; see `Child.ask`.

    Raises:
        ChildError: there is no answer.
        OSError: it cannot be started.
    """
    with unwind_on_termination(), Child(worker) as child:
        return child.ask(request, seconds=seconds, show=show)


_CAUSE = re.compile(r"Assertion|LLVM ERROR|Check failed|Fatal|UNREACHABLE|terminate called|stack overflow|^F\d")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning)\b")
_LONGEST = 2000
"""The most characters of a line that are shown; some libraries print the whole module in one."""


def describe_crash(code: int, stderr: str) -> str:
    """Return one line about why a process died: the signal or exit code, and the line with the cause.

    Args:
        code: The exit code, negative for a signal.
        stderr: What the process wrote to standard error.
    """
    cause = find_cause(stderr)
    return f"the process died ({name_exit(code)}){f': {cause}' if cause else ''}"


def name_exit(code: int) -> str:
    """Return the name of the signal that ended a process, or its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def find_cause(stderr: str) -> str:
    """Return the line that says why a process died: a failed check, else an exception, else the last line; or ""."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    checks = [line for line in lines if _CAUSE.search(line)]
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    cause = (checks[:1] or exceptions[-1:] or lines[-1:] or [""])[0]
    return cause if len(cause) <= _LONGEST else f"{cause[:_LONGEST]} ..."
