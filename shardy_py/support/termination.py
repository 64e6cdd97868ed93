"""Handle signals that ask a process to end: its unfinished work is undone first.

By default such a signal ends the process where it stands, and leaves half-written files and other processes behind.
That is as it should be while there is nothing to undo: no library can delay it. So handlers are installed for the time
of a block only, and only where nobody else has installed one.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

_LONGEST_IMPORT = 10.0
"""The seconds that an interrupt waits for the end of an import."""
_PAUSE = 0.02
"""The seconds between two looks at whether an import has ended."""


class Terminated(KeyboardInterrupt):
    """The process is asked to end, for example by a scheduler of jobs whose time is over.

    Attributes:
        number: The number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def raise_on_termination() -> Iterator[None]:
    """Raise `Terminated` in a block where a signal asks the process to end; a second signal is ignored.

    In a thread that is not the main one nothing changes, as Python handles signals in the main thread.
    """
    replaced: list[int] = []

    def stop(number: int) -> None:
        for other in replaced:
            signal.signal(other, signal.SIG_IGN)
        raise Terminated(number)

    if threading.current_thread() is threading.main_thread():
        replaced += [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    handler = _BetweenImports(stop)
    for number in replaced:
        signal.signal(number, handler)
    try:
        try:
            yield
        finally:
            handler.finish()
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def unwind_on_termination() -> Iterator[None]:
    """Leave a block before a signal ends the process, so that the block can clean up."""
    try:
        with raise_on_termination():
            yield
    except Terminated as error:
        if signal.getsignal(error.number) is signal.SIG_DFL:
            os.kill(os.getpid(), error.number)
        raise


def interrupt_between_imports() -> None:
    """Let the interrupt of a user wait for the end of an import, for a process that runs a command."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _BetweenImports(_interrupt))


def _interrupt(number: int) -> None:
    raise KeyboardInterrupt


class _BetweenImports:
    """Handler of signals that waits for the end of an import before it acts.

    Libraries in C++ do not survive an exception while they register their classes, and numpy hides one. An import that
    takes longer than ten seconds is interrupted.

    Args:
        act: Takes the number of the signal.
    """

    def __init__(self, act: Callable[[int], None]) -> None:
        self._act = act
        self._waiting: tuple[int, float] | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Act on a signal, or wait; the alarm calls this again."""
        number, begin = self._waiting or (number, time.monotonic())
        is_early = time.monotonic() - begin < _LONGEST_IMPORT
        if is_early and _is_importing(frame) and _set_alarm(self):
            self._waiting = number, begin
        else:
            self._stop_waiting()
            self._act(number)

    def finish(self) -> None:
        """Act on a signal that still waits, as nothing is imported any more."""
        waiting = self._waiting
        if waiting is not None:
            self._stop_waiting()
            self._act(waiting[0])

    def _stop_waiting(self) -> None:
        """Leave the alarm to others."""
        if self._waiting is not None:
            self._waiting = None
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _set_alarm(handle: _BetweenImports) -> bool:
    """Schedule another call of a handler, unless the alarm is in use; return whether it is scheduled."""
    # Not by a thread that sends the signal again: the interrupted code may hold the locks that its start needs.
    if not hasattr(signal, "setitimer"):
        return False
    known = signal.getsignal(signal.SIGALRM)
    if known is not signal.SIG_DFL and not isinstance(known, _BetweenImports):
        return False
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, _PAUSE)
    return True


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
