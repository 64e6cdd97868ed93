"""Texts about the code of plugins for errors: objects, exceptions, and source locations like ``file.py:12``.

They are written even where the methods of a plugin's own objects fail.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from shardy_py.errors import Diagnostic, ShardyError, did_you_mean, with_article
from shardy_py.values import without_addresses

_LONG = 200


def diagnostics_of(error: ShardyError) -> list[Diagnostic]:
    """Return the diagnostics of an error of this package, even if a plugin raised it without any."""
    diagnostics = error.diagnostics or (type(error).__name__,)
    return [
        item if isinstance(item, Diagnostic) else Diagnostic("plugin-failed", shown_text(item)) for item in diagnostics
    ]


def shown_text(thing: Any) -> str:
    """Return a text as it is, anything else as `shown` does."""
    return thing if isinstance(thing, str) else shown(thing)


def describe_error(error: BaseException) -> str:
    """Return the class and the first line of any exception, even if its own text fails."""
    try:
        text = str(error).strip()
    except Exception:
        text = "an error without a text"
    line = text.splitlines()[0] if text else ""
    line = line if len(line) <= _LONG else line[:_LONG] + "..."
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def name_hint(error: BaseException) -> str:
    """Return a hint for an exception about a name that this package does not have; "" for other exceptions."""
    text = describe_error(error)
    if not isinstance(error, (AttributeError, ImportError)):
        return ""
    if "'shardy_py" not in text or "'shardy_py." in text:
        return _attribute_hint(error)
    name = re.search(r"(?:attribute|name) '(\w+)'", text)
    modules = [sys.modules.get("shardy_py"), sys.modules.get("shardy_py.plugins")]
    public, more = ([] if module is None else list(vars(module).get("__all__", ())) for module in modules)
    if not name:
        return ""
    return f"{name[1]} is in shardy_py.plugins" if name[1] in more else did_you_mean(name[1], {*public, *more})


def _attribute_hint(error: AttributeError | ImportError) -> str:
    """Return a hint for an attribute that an object, a class or a module of this package does not have."""
    owner, name = getattr(error, "obj", None), error.name
    kind = owner if isinstance(owner, type) else type(owner)
    home = getattr(owner, "__name__", "") if inspect.ismodule(owner) else kind.__module__
    if not name or home.partition(".")[0] != "shardy_py":
        return ""
    attributes = getattr(owner, "attributes", None)
    if isinstance(attributes, Mapping) and name in attributes:
        return f"attributes[{name!r}]"
    known = [item for item in dir(owner) if not item.startswith("_")]
    return did_you_mean(name, known) or did_you_mean(name, known, likeness=0.54)


def key_hint(error: BaseException, attributes: Mapping[str, Any]) -> str:
    """Return a hint for a name that is not among the attributes of an op; "" for other exceptions."""
    if not isinstance(error, KeyError) or len(error.args) != 1 or error.args[0] in attributes:
        return ""
    known = f"the attributes of the op are {', '.join(attributes)}" if attributes else "the op has no attributes"
    return did_you_mean(str(error.args[0]), attributes, otherwise=known)


def shown(thing: object) -> str:
    """Return a short text for any object, even if its own text fails."""
    if inspect.iscoroutine(thing):
        thing.close()
        return "a coroutine (of an async def)"
    if inspect.isgenerator(thing):
        return "a generator"
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    try:
        text = without_addresses(repr(thing))
    except Exception:
        return with_article(type(thing).__name__)
    return text if len(text) <= _LONG and "\n" not in text else with_article(type(thing).__name__)


_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_LIBRARIES = ("site-packages", "dist-packages")
_STANDARD = os.path.dirname(os.__file__) + os.sep


def show_location(file: str, line: int) -> str:
    """Return a source location as ``file:line``, relative to the working directory if possible."""
    path = os.path.abspath(file)
    try:
        here = os.getcwd() + os.sep
    except OSError:
        here = os.sep
    return f"{path.removeprefix(here)}:{line}"


def shorten_location(location: str) -> str:
    """Return a location of `calling_location` in the form of `show_location`."""
    file, colon, line = location.rpartition(":")
    return show_location(file, int(line)) if colon and line.isdigit() else location


def location_of(thing: Any) -> str:
    """Return the source location of a function, method or class of an object; "" outside plugins."""
    code = _code_of(thing)
    if code is None or _is_ours(code.co_filename):
        return ""
    return show_location(code.co_filename, code.co_firstlineno)


def location_in_trace(error: BaseException, thing: Any = None) -> str:
    """Return the last line of a plugin that an exception came through, "" where there is none.

    Args:
        error: The exception.
        thing: The function of the plugin; its files come before those of libraries that it calls.
    """
    if isinstance(error, SyntaxError) and error.lineno and not (error.filename or "<").startswith("<"):
        return show_location(str(error.filename), error.lineno)
    lines = _foreign_lines(error.__traceback__)
    if not lines:
        return ""
    code = _code_of(thing)
    home = os.path.dirname(code.co_filename if code else lines[0][0])
    plugin_lines = [item for item in lines if _is_under(home, item[0], (code.co_filename if code else lines[0][0]))]
    return show_location(*(plugin_lines or lines[:1])[-1])


def calling_location() -> str:
    """Return the line outside this package that led here, "" where there is none or it is in a bundled plugin."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _foreign_lines(trace: TracebackType | None) -> list[tuple[str, int]]:
    lines = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not _is_ours(name) and not _is_of_python(name):
            lines.append((name, trace.tb_lineno))
        trace = trace.tb_next
    return lines


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
    codes = [item.__code__ for item in vars(class_).values() if isinstance(getattr(item, "__code__", None), CodeType)]
    return min(codes, key=lambda item: item.co_firstlineno) if codes and class_.__module__ != "builtins" else None
