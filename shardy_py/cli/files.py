"""The inputs and outputs of commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.files import write_atomically

if TYPE_CHECKING:
    from shardy_py.plugins import Registry

__all__ = ["read_input", "read_stdin", "write_atomically"]

STDIN = "-"


def read_input(file: str, *, untrusted: bool = False, registry: Registry | None = None) -> Any:
    """Return the source for a frontend: the path, or the bytes of stdin.

    Args:
        file: The name of the file, or a dash.
        untrusted: Whether MLIR's parser runs in a process of its own.
        registry: The registry with the frontends of plugins.

    Raises:
        OptionError: stdin cannot be read.
        ShardyError: a module of unknown origin is not valid.
    """
    given = read_stdin() if file == STDIN else Path(file)
    if not untrusted:
        return given
    from shardy_py.api.source import read_apart

    return read_apart(given, registry=registry)


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
