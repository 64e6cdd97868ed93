"""Places in the code of plugins, as errors name them: ``file.py:12``."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_LIBRARIES = ("site-packages", "dist-packages")
_STANDARD = os.path.dirname(os.__file__) + os.sep


def show_place(file: str, line: int) -> str:
    """Return a place in a file as ``file:line``, from the working directory where the file is below it."""
    path = os.path.abspath(file)
    try:
        here = os.getcwd() + os.sep
    except OSError:
        here = os.sep
    return f"{path.removeprefix(here)}:{line}"


def shorten_place(place: str) -> str:
    """Return a place that `calling_place` gave as `show_place` shows it."""
    file, colon, line = place.rpartition(":")
    return show_place(file, int(line)) if colon and line.isdigit() else place


def place_of(thing: Any) -> str:
    """Return the place of a function, a method, or the class of an object; "" if it is not in a plugin."""
    code = _code_of(thing)
    if code is None or _is_ours(code.co_filename):
        return ""
    return show_place(code.co_filename, code.co_firstlineno)


def place_in_trace(error: BaseException, thing: Any = None) -> str:
    """Return the last line of a plugin that an exception came through, "" where there is none.

    Args:
        error: The exception.
        thing: The function of the plugin; its files come before those of libraries that it calls.
    """
    if isinstance(error, SyntaxError) and error.lineno and not (error.filename or "<").startswith("<"):
        return show_place(str(error.filename), error.lineno)
    lines = _foreign_lines(error.__traceback__)
    if not lines:
        return ""
    code = _code_of(thing)
    home = os.path.dirname(code.co_filename if code else lines[0][0])
    own = [item for item in lines if _is_under(home, item[0], (code.co_filename if code else lines[0][0]))]
    return show_place(*(own or lines[:1])[-1])


def calling_place() -> str:
    """Return the line outside this package that led here, "" where there is none or it is in a bundled plugin."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _foreign_lines(trace: TracebackType | None) -> list[tuple[str, int]]:
    found = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not _is_ours(name) and not _is_of_python(name):
            found.append((name, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) or "<attrs generated" in file


def _is_of_python(file: str) -> bool:
    """Return whether a file is of the standard library, or none at all."""
    if file.startswith("<"):
        return True
    return file.startswith(_STANDARD) and not any(name in file for name in _LIBRARIES)


def _is_under(home: str, file: str, first: str) -> bool:
    if os.path.basename(home) in _LIBRARIES:
        return file == first
    return os.path.dirname(file).startswith(home) and not any(name in file[len(home) :] for name in _LIBRARIES)


def _code_of(thing: Any) -> CodeType | None:
    while isinstance(thing, partial):
        thing = thing.func
    thing = getattr(thing, "__func__", thing)
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        return code
    class_ = thing if isinstance(thing, type) else type(thing)
    found = [item.__code__ for item in vars(class_).values() if isinstance(getattr(item, "__code__", None), CodeType)]
    return min(found, key=lambda item: item.co_firstlineno) if found and class_.__module__ != "builtins" else None
