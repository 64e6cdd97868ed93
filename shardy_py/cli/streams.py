"""Standard input, output and error as a command may find them: closed, full, in another encoding, without a reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_CANNOT_WRITE = 2
"""The exit code of a command whose output could not be written."""


@contextmanager
def standard_streams() -> Iterator[None]:
    """Prepare the standard streams of this process for a command, and flush them at its end.

    A stream that is closed stays unusable, but its number is taken: a file that is opened later must not get it, or
    the messages of libraries would be written into that file. Text goes out as UTF-8, as MLIR writes it.
    """
    _reopen()
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors=errors)
    try:
        yield
    finally:
        _finish()


def _reopen() -> None:
    """Occupy the file descriptors of closed streams, so that writing to a closed standard output is an error."""
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                # The lowest number that is free is the one just found closed.
                os.open(os.devnull, mode)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the rest of the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _finish() -> None:
    """Flush the streams; an interpreter that cannot do so at its end would print a traceback."""
    # An exit that is under way has said why, and keeps its code.
    under_way = sys.exc_info()[0] is not None
    problem = _flush(sys.stdout)
    if problem is not None:
        sys.stdout = None
        if not under_way and not isinstance(problem, BrokenPipeError) and sys.stderr is not None:
            with suppress(OSError):
                sys.stderr.write(f"error: standard output cannot be written: {problem.strerror or problem}\n")
    if _flush(sys.stderr) is not None:
        sys.stderr = None
    if problem is not None and not under_way:
        sys.exit(_CANNOT_WRITE)


def _flush(stream: TextIO | None) -> OSError | None:
    """Flush a stream, and return the error if there is one."""
    if stream is None or stream.closed:
        return None
    try:
        stream.flush()
    except OSError as error:
        return error
    return None
