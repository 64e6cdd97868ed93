"""Reading inputs and writing outputs: a file is replaced only when its new content is complete."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

STDIN = "-"


def read_input(file: str) -> Path | bytes:
    """Return what a frontend reads: the path, or the bytes of stdin."""
    return sys.stdin.buffer.read() if file == STDIN else Path(file)


def write_atomically(path: str, content: str | bytes) -> None:
    """Write a whole file next to its place, then move it there.

    Raises:
        OSError: the place cannot be written; the old file is as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A device or a pipe such as /dev/null cannot be replaced.
        target.write_bytes(data)
        return
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        # The name of the temporary file would tell the user nothing.
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
