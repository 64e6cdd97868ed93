"""Serve the requests of another process until there are no more, or until that process ends.

A request is the seconds that it may take, its length and its bytes. An answer is a byte that says what it is, a step of
the work or the answer itself, its length and its bytes.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import IO, Protocol

STEP, ANSWER = b"s", b"a"
_LENGTH = struct.Struct("<Q")
_SECONDS = struct.Struct("<d")
_GRACE = 5
"""The seconds behind a time limit after which a process ends itself, as its parent may be gone that keeps the limit."""
_LONGEST_ALARM = 10**6


class ShowStep(Protocol):
    """Receiver of progress: the steps done, their total, and the next step."""

    def __call__(self, done: int, total: int | None, what: str = "") -> None:
        """Show it."""
        ...


def run(worker: str) -> None:
    """Run a worker, which calls `serve`."""
    # An interrupt of the terminal is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_module(worker).main()


def serve(answer: Callable[[bytes, ShowStep], bytes], *, idle_seconds: int = 0) -> None:
    """Answer the requests of the parent; end with it, and with the last request.

    What libraries print goes to standard error, so that it does not stand among the answers.

    Args:
        answer: Takes a request and what shows progress.
        idle_seconds: The seconds without a request after which the process ends; 0 for no end.
    """
    end_with_parent()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def show(done: int, total: int | None, what: str = "") -> None:
        send(answers, json.dumps([done, total, what]).encode(), kind=STEP)

    while True:
        _set_alarm(idle_seconds)
        head = requests.read(_SECONDS.size)
        request = receive(requests)
        if request is None:
            return
        _set_alarm(min(_SECONDS.unpack(head)[0], _LONGEST_ALARM) + _GRACE)
        send(answers, answer(request, show), kind=ANSWER)


def send_request(pipe: IO[bytes], data: bytes, seconds: float) -> None:
    """Write a request."""
    send(pipe, data, kind=_SECONDS.pack(seconds))


def send(pipe: IO[bytes], data: bytes, *, kind: bytes) -> None:
    """Write a message."""
    pipe.write(kind + _LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Return a message, or None where the pipe ends before the end of one."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    data = pipe.read(size)
    return data if len(data) == size else None


def bound_memory(least: int, per_byte: int, size: int) -> None:
    """Bound the memory of this process, where the system can do so, and let it end without a dump.

    Args:
        least: The bytes that it may have for any input.
        per_byte: How many more for each byte of the input.
        size: The size of the input.
    """
    try:
        import resource
    except ImportError:  # There is no such module on Windows.
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most, hard = least + per_byte * size, resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _set_alarm(seconds: float) -> None:
    """End this process after some seconds, where the system can do so; 0 takes that back."""
    if sys.platform != "win32":
        # Not by a handler: a library that does not return would never let Python call it.
        signal.alarm(math.ceil(seconds))


_POLL_SECONDS = 1.0
"""The time between two looks at the parent."""


def end_with_parent() -> None:
    """End this process soon after its parent ends.

    A parent that is killed, by ``timeout`` for example, cannot end its children, and XLA may go on for hours.
    """
    _watch(os.getppid())


@cache
def end_with(process: int) -> None:
    """End this process soon after its parent, if that has a given id; repeated calls watch once.

    Args:
        process: The id of the other one; a process that somebody else started, or a thread of it, is left alone.
    """
    if os.getppid() == process or _is_left_by(process):
        _watch(process)


def _is_left_by(process: int) -> bool:
    """Return whether this is a worker of joblib's loky that a process started, which may be gone already."""
    from multiprocessing import current_process, parent_process

    parent = parent_process()
    is_loky = type(current_process()).__name__ == "LokyProcess"
    return is_loky and parent is not None and parent.pid == process


def _watch(parent: int) -> None:
    threading.Thread(target=_wait_for_end, args=(parent,), daemon=True).start()


def _wait_for_end(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
