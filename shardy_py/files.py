"""Writing files: a file is replaced only when its new content is complete."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path

_DESCRIPTOR = r"/(?:dev|proc/(?:self|thread-self|\d+))/fd/(\d+)"
_MOST_LINKS = 40
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a whole file next to its place, then move it there.

    A file that exists keeps its mode, and a link stays a link. What cannot be replaced, such as a pipe or
    ``/dev/stdout``, is written to. A process that is killed leaves the old file, and at most a hidden one beside it.

    Args:
        path: The file.
        content: Its content; text is written as UTF-8.

    Raises:
        OSError: the place cannot be written; the old file is as it was. It has the given name.
        UnicodeEncodeError: the text is no valid Unicode; the old file is as it was.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        _write(os.fspath(path), data)
    except OSError as error:
        # A full disk has no name, and that of a temporary file would tell the user nothing.
        raise OSError(error.errno, error.strerror, str(path)) from None


def _write(path: str, data: bytes) -> None:
    descriptor = _descriptor(path)
    if descriptor is not None:
        _append(descriptor, data)
        return
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
    else:
        _replace(target, data)


def _replace(target: Path, data: bytes) -> None:
    """Replace a regular file, or make a new one."""
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is write-protected")
    partial = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.part")
    handle = os.open(partial, _NEW, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        if mode is not None:
            os.chmod(partial, mode)
        os.replace(partial, target)
    except BaseException:
        partial.unlink()
        raise


def _descriptor(path: str) -> int | None:
    """Return the number of the open file that a path such as ``/dev/stdout`` stands for, or None."""
    for _ in range(_MOST_LINKS):
        match = re.fullmatch(_DESCRIPTOR, os.path.abspath(path))
        if match is not None:
            return int(match[1])
        if not os.path.islink(path):
            return None
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def _append(descriptor: int, data: bytes) -> None:
    """Write to an open file of this process, behind what it has been given already."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(data)
