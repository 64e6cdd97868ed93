"""The inputs and outputs of commands."""

from __future__ import annotations

import sys
from pathlib import Path

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.files import write_atomically

__all__ = ["read_input", "read_stdin", "write_atomically"]

STDIN = "-"


def read_input(file: str) -> Path | bytes:
    """Return what a frontend reads: the path, or the bytes of stdin.

    Raises:
        OptionError: stdin cannot be read.
    """
    return read_stdin() if file == STDIN else Path(file)


def read_stdin() -> bytes:
    """Return the bytes of stdin.

    Raises:
        OptionError: it is closed, or cannot be read.
    """
    try:
        if sys.stdin is None:
            raise OSError(0, "it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        message = f"standard input cannot be read: {error.strerror or error}"
        raise OptionError(Diagnostic("stdin", message, hint="give a file, or pipe the module in")) from None
