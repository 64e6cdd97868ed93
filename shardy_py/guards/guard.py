"""Call the code of plugins behind a guard: a failure is an error that names the plugin and the location."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.guards.error_texts import (
    describe_error,
    diagnostics_of,
    key_hint,
    location_in_trace,
    location_of,
    name_hint,
    shorten_location,
    shown,
)
from shardy_py.ir.graph.program import Op
from shardy_py.values import frozen

_NOTHING = object()
_MANY = 100_000
_OWN_RECURSION = 200
"""The least number of frames in the code of a plugin for a recursion without end, as against a nested program."""

Check = Callable[[Any, Op], Any]
"""Takes an answer and the op, returns the answer in the form that is wanted, or raises `InvalidAnswer`."""


class InvalidAnswer(Exception):
    """An invalid answer of a plugin, with a hint."""

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
    raise InvalidAnswer(f"returned {shown(answer)}, not True or False", hint)


@frozen
class Guard:
    """Calls one function of a plugin.

    Args:
        function: The function, method or object; its file and line are named.
        role: What it is to the package: ``the rule function``.
        owner: The words that name the plugin.
        error: The class of the errors.
        code: Their code.
        location: Where it is defined, in case its own code does not tell.
    """

    function: Any
    role: str
    owner: str
    error: type[ShardyError] = PluginError
    code: str = "plugin-failed"
    location: str = ""

    def call(self, *arguments: Any, check: Check | None = None, op: Op | None = None) -> Any:
        """Return the answer of the function.

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

        def guarded(op: Op, first: Any = _NOTHING, *others: Any) -> Any:
            try:
                # Most calls are about the op alone, or about one value of it; to hand on any number takes longer.
                if first is _NOTHING:
                    answer = function(op)
                else:
                    answer = function(op, first, *others) if others else function(op, first)
                return answer if check is None else check(answer, op)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise failure(error, op) from error

        return guarded

    def failure(self, error: BaseException, op: Op | None = None) -> ShardyError:
        """Return the error for an exception of the function; raises an exception that is not the fault of a plugin."""
        if isinstance(error, InvalidAnswer):
            return self.refusal(error.message, op, hint=error.hint)
        if isinstance(error, ShardyError):
            location = location_in_trace(error, self.function)
            return type(error)(*(self._with_location(item, op, location) for item in diagnostics_of(error)))
        if isinstance(error, RecursionError) and _depth(error) < _OWN_RECURSION:
            raise error
        location = location_in_trace(error, self.function)
        where = f", at {location}" if location else ""
        hint = name_hint(error) or (key_hint(error, op.attributes) if op else "")
        return self.refusal(f"raised {describe_error(error)}{where}", op, hint=hint)

    def refusal(self, message: str, op: Op | None = None, *, hint: str = "") -> ShardyError:
        """Return the error for an invalid answer: ``returned 3, not a rule``."""
        diagnostic = Diagnostic(self.code, f"{self.role} {message}", hint=hint)
        return self.error(self._with_location(diagnostic, op, ""))

    @property
    def provenance(self) -> str:
        """The owner and the location of the function: ``defined by plugin 'toy' at toy.py:3``."""
        return self._defined_by("")

    def _defined_by(self, location: str) -> str:
        where = location or location_of(self.function) or shorten_location(self.location)
        return f"defined by {self.owner}" + (f" at {where}" if where else "")

    def _with_location(self, item: Diagnostic, op: Op | None, location: str) -> Diagnostic:
        if "defined by " in item.hint:
            return item
        by = self._defined_by(location)
        return evolve(
            item,
            op=item.op or (op.name if op else ""),
            location=item.location or (op.location if op else ""),
            hint=f"{item.hint}; {by}" if item.hint else by,
        )


def bounded_list(items: Iterable[Any]) -> list[Any]:
    """Return the items of an iterable of a plugin.

    Raises:
        Unfit: it does not end.
    """
    limited = list(islice(items, _MANY + 1))
    if len(limited) > _MANY:
        raise InvalidAnswer(f"gives more than {_MANY} items", "return a list")
    return limited


def _depth(error: BaseException) -> int:
    count, trace = 0, error.__traceback__
    while trace is not None:
        count, trace = count + 1, trace.tb_next
    return count
