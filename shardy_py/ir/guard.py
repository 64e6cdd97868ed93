"""One guard around every call into the code of plugins: what fails there is an error that names plugin and place."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from attrs import evolve, frozen

from shardy_py.errors import Diagnostic, PluginError, ShardyError, did_you_mean
from shardy_py.ir.graph import Op

_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
_LIBRARIES = ("site-packages", "dist-packages")
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LONG = 200
_MANY = 100_000
_OWN_RECURSION = 200
"""Frames that code of a plugin takes at least where it calls itself without end, not the program being nested."""

Check = Callable[[Any, Op], Any]
"""Takes an answer and the op, returns the answer in the form that is wanted, or raises `Unfit`."""


class Unfit(Exception):
    """An answer that is none: what it is, and what is wanted in its place."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def as_boolean(answer: Any, op: Op) -> bool:
    """Return an answer that is true or false.

    Raises:
        Unfit: it is something else.
    """
    if answer is True or answer is False:
        return answer
    if type(answer).__name__ in ("bool_", "bool"):
        return bool(answer)
    hint = "is a return missing?" if answer is None else "return bool(...)"
    raise Unfit(f"returned {shown(answer)}, not True or False", hint)


@frozen
class Guard:
    """Calls one function of a plugin.

    Args:
        function: The function, method or object; its file and line are named.
        role: What it is to the package: ``the rule function``.
        owner: The words that name the plugin.
        error: The class of the errors.
        code: Their code.
        place: Where it is defined, in case its own code does not tell.
    """

    function: Any
    role: str
    owner: str
    error: type[ShardyError] = PluginError
    code: str = "plugin-failed"
    place: str = ""

    def call(self, *arguments: Any, check: Check | None = None, op: Op | None = None) -> Any:
        """Return what the function answers.

        Args:
            arguments: What it is called with.
            check: Refuses an answer that is none.
            op: The op it is asked about, by default the first argument if that is one.

        Raises:
            ShardyError: it raises, whatever that is, or its answer is refused. An interrupt passes.
        """
        if op is None and arguments and isinstance(arguments[0], Op):
            op = arguments[0]
        try:
            answer = self.function(*arguments)
            return answer if check is None else check(answer, op)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self.failure(error, op) from error

    def wrap(self, check: Check | None = None) -> Callable[..., Any]:
        """Return a function of an op, and perhaps more, that calls as `call` does; for calls that are many."""
        function, failure = self.function, self.failure

        def guarded(op: Op, *arguments: Any) -> Any:
            try:
                answer = function(op, *arguments)
                return answer if check is None else check(answer, op)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise failure(error, op) from error

        return guarded

    def failure(self, error: BaseException, op: Op | None = None) -> ShardyError:
        """Return the error in the place of one that came out of the function; raises what is no fault of a plugin."""
        if isinstance(error, Unfit):
            return self.refusal(error.message, op, hint=error.hint)
        if isinstance(error, ShardyError):
            place = place_in_trace(error, self.function)
            return type(error)(*(self._placed(item, op, place) for item in diagnostics_of(error)))
        if isinstance(error, RecursionError) and _depth(error) < _OWN_RECURSION:
            raise error
        place = place_in_trace(error, self.function)
        where = f", at {place}" if place else ""
        return self.refusal(f"raised {describe_error(error)}{where}", op, hint=name_hint(error))

    def refusal(self, message: str, op: Op | None = None, *, hint: str = "") -> ShardyError:
        """Return the error about what the function does: ``returned 3, not a rule``."""
        made = Diagnostic(self.code, f"{self.role} {message}", hint=hint)
        return self.error(self._placed(made, op, ""))

    @property
    def provenance(self) -> str:
        """Who defines the function, and where: ``defined by plugin 'toy' at toy.py:3``."""
        return self._defined_by("")

    def _defined_by(self, place: str) -> str:
        where = place or place_of(self.function) or shorten_place(self.place)
        return f"defined by {self.owner}" + (f" at {where}" if where else "")

    def _placed(self, item: Diagnostic, op: Op | None, place: str) -> Diagnostic:
        if "defined by " in item.hint:
            return item
        by = self._defined_by(place)
        return evolve(
            item,
            op=item.op or (op.name if op else ""),
            location=item.location or (op.location if op else ""),
            hint=f"{item.hint}; {by}" if item.hint else by,
        )


def diagnostics_of(error: ShardyError) -> list[Diagnostic]:
    """Return the diagnostics of one of our errors; code of plugins may have raised it with a text, or with nothing."""
    given = error.diagnostics or (type(error).__name__,)
    return [item if isinstance(item, Diagnostic) else Diagnostic("plugin-failed", shown_text(item)) for item in given]


def shown_text(thing: Any) -> str:
    """Return a text as it is, anything else as `shown` does."""
    return thing if isinstance(thing, str) else shown(thing)


def few(items: Iterable[Any]) -> list[Any]:
    """Return what an iterable of a plugin yields.

    Raises:
        Unfit: it does not end.
    """
    found = list(islice(items, _MANY + 1))
    if len(found) > _MANY:
        raise Unfit(f"gives more than {_MANY} items", "return a list")
    return found


def describe_error(error: BaseException) -> str:
    """Return the class and the first line of the text of any exception, even of one whose text cannot be had."""
    try:
        text = str(error).strip()
    except Exception:
        text = "an error without a text"
    line = text.splitlines()[0] if text else ""
    line = line if len(line) <= _LONG else line[:_LONG] + "..."
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def name_hint(error: BaseException) -> str:
    """Return what a name that this package does not have may stand for, where that is what an exception is about."""
    text = describe_error(error)
    if not isinstance(error, (AttributeError, ImportError)) or "'shardy_py" not in text:
        return ""
    name = re.search(r"(?:attribute|name) '(\w+)'", text)
    modules = [sys.modules.get("shardy_py"), sys.modules.get("shardy_py.plugins")]
    public, more = ([] if module is None else list(vars(module).get("__all__", ())) for module in modules)
    if not name:
        return ""
    return f"{name[1]} is in shardy_py.plugins" if name[1] in more else did_you_mean(name[1], {*public, *more})


def shown(thing: object) -> str:
    """Return a short text for any object, even for one whose text cannot be had."""
    if inspect.iscoroutine(thing):
        thing.close()
        return "a coroutine (of an async def)"
    if inspect.isgenerator(thing):
        return "a generator"
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    try:
        text = repr(thing)
    except Exception:
        return f"a {type(thing).__name__}"
    return text if len(text) <= _LONG and "\n" not in text else f"a {type(thing).__name__}"


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
    """Return where a function, a method, or the class of an object is written; "" where that is not in a plugin."""
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


def _depth(error: BaseException) -> int:
    count, trace = 0, error.__traceback__
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count


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
