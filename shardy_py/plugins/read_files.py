"""Files that the code of a plugin reads while it runs: a table of rules, or a piece of source that it executes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import Any

from shardy_py.plugins.imported_modules import is_installed
from shardy_py.values import define

_OF_IMPORTS = (".pyc", ".so", ".pyd")
_CHANGING = ("/proc/", "/sys/", "/dev/")
"""Folders whose files say something about the machine at this moment."""


@define(eq=False)
class _Recorder:
    thread: int
    paths: dict[str, None]


_RECORDERS: list[_Recorder] = []


@contextmanager
def record_read_files() -> Iterator[dict[str, None]]:
    """Note the absolute paths of the files that this thread opens for reading in a block.

    Files of installed packages do not count, nor do those that hold compiled modules. What is imported in the block
    does, as far as Python reads its source.
    """
    _install()
    recorder = _Recorder(get_ident(), {})
    _RECORDERS.append(recorder)
    try:
        yield recorder.paths
    finally:
        _RECORDERS.remove(recorder)
    for path in list(recorder.paths):
        if path.startswith(_CHANGING) or not os.path.isfile(path) or is_installed(path):
            del recorder.paths[path]


@cache
def _install() -> None:
    """Add the hook of Python that sees what is opened; it stays as long as the process."""
    sys.addaudithook(_note_opened)


def _note_opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _RECORDERS:
        return
    path, mode, flags = arguments
    is_write = set("wax+").intersection(mode) if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)
    if is_write or not isinstance(path, (str, bytes)):
        return
    name = os.fsdecode(path)
    if name.endswith(_OF_IMPORTS):
        return
    for recorder in _RECORDERS:
        if recorder.thread == get_ident():
            recorder.paths[os.path.abspath(name)] = None
