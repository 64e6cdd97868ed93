"""Writing files: a file is replaced only when its new content is complete."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from pathlib import Path

from shardy_py.support.termination import unwind_on_termination

_DESCRIPTOR = r"/(?:dev|proc/(?:self|thread-self|(\d+)))/fd/(\d+)"
_MOST_LINKS = 40
_BINARY = getattr(os, "O_BINARY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
_MODE = 0o666
"""The mode of a new file, from which the system takes that of the umask."""


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file beside its target, then move it to the target.

    The new file has the mode of the old one before it has any content, and a symbolic link stays a link. Where the
    move would change more than the content, it is written in place: a file with several names (hard links), of another
    owner, with attributes, or in a folder that takes no new files. What cannot be replaced, such as a pipe or
    ``/dev/stdout``, is written to. A process that is ended leaves the old file and nothing beside it; one that is
    killed at once may leave a hidden file.

    Args:
        path: The file.
        content: Its content; text is written as UTF-8, names of files in it as the system has them.

    Raises:
        OSError: the target cannot be written; the old file is as it was. It has the given name.
        UnicodeEncodeError: the text is not valid Unicode; the old file is as it was.
    """
    data = content.encode(errors="surrogateescape") if isinstance(content, str) else content
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
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        old = os.stat(target)
    except FileNotFoundError:
        _replace(target, data, _MODE)
        return
    if not stat.S_ISREG(old.st_mode):
        Path(target).write_bytes(data)
        return
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is write-protected")
    if _is_more_than_content(target, old):
        _overwrite(target, data)
    else:
        _replace(target, data, stat.S_IMODE(old.st_mode), exists=True)


def _replace(target: str, data: bytes, mode: int, *, exists: bool = False) -> None:
    """Replace a regular file, or create it.

    Args:
        target: The file.
        data: The content.
        mode: The mode; that of a new file without the bits of the umask.
        exists: Whether the mode is that of an old file, from which nothing is taken.
    """
    partial = os.path.join(os.path.dirname(target), f".shardy-{os.urandom(8).hex()}.part")
    with unwind_on_termination():
        try:
            # Never wider than in the end, as others could open the file and read later what comes.
            handle = os.open(partial, _NEW, mode & 0o777)
            with os.fdopen(handle, "wb") as stream:
                if exists and hasattr(os, "fchmod"):
                    os.fchmod(handle, mode)
                stream.write(data)
            os.replace(partial, target)
        except BaseException:
            # The move may be done already when a signal comes.
            Path(partial).unlink(missing_ok=True)
            raise


def _overwrite(target: str, data: bytes) -> None:
    """Write a regular file in place; one that does not fit is as it was."""
    handle = os.open(target, os.O_WRONLY | _BINARY)
    with unwind_on_termination(), os.fdopen(handle, "wb", buffering=0) as stream:
        size = os.fstat(handle).st_size
        try:
            _reserve(handle, len(data), size)
        except OSError:
            os.ftruncate(handle, size)
            raise
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]
        os.ftruncate(handle, len(data))


def _reserve(handle: int, wanted: int, size: int) -> None:
    """Get the space that a longer content needs, where the file system can give it ahead."""
    if wanted <= size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, size, wanted - size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def _is_more_than_content(target: str, old: os.stat_result) -> bool:
    """Return whether a file has properties that a new file would lose."""
    if old.st_nlink > 1 or not os.access(os.path.dirname(target), os.W_OK | os.X_OK):
        return True
    if hasattr(os, "geteuid") and (old.st_uid != os.geteuid() or old.st_gid != _group_of_new(target)):
        return True
    try:
        attributes = os.listxattr(target) if hasattr(os, "listxattr") else []
    except OSError:
        return False
    # The system gives each file those of its security modules.
    return any(not name.startswith("security.") for name in attributes)


def _group_of_new(target: str) -> int:
    """Return the group that a new file beside another one would have."""
    folder = os.stat(os.path.dirname(target))
    return folder.st_gid if folder.st_mode & stat.S_ISGID else os.getegid()


def _descriptor(path: str) -> int | None:
    """Return the number of the open file that a path such as ``/dev/stdout`` stands for, or None."""
    for _ in range(_MOST_LINKS):
        match = re.fullmatch(_DESCRIPTOR, os.path.abspath(path))
        if match is not None:
            return int(match[2]) if match[1] in (None, str(os.getpid())) else None
        if not os.path.islink(path):
            return None
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def _append(descriptor: int, data: bytes) -> None:
    """Append to an open file of this process."""
    if sys.stdout is not None:
        sys.stdout.flush()
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(data)
