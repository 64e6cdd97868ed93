"""Checks of functions and objects that plugins give: their methods and the arguments these take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType, MethodType
from typing import Any

from shardy_py.errors import Diagnostic, PluginError, did_you_mean
from shardy_py.guards.error_texts import describe_error, shown
from shardy_py.support.arguments import signature_of

_NO_FUNCTION = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_WORDS = ("get_", "set_", "should_", "transform_")
_NEARLY = 0.85
"""The likeness from which on the name of a method counts as a misspelt name of a protocol's method."""


def refuse(code: str, message: str, op: str = "", *, hint: str = "") -> PluginError:
    """Return the error about an argument."""
    return PluginError(Diagnostic(code, message, op=op, hint=hint))


def check_methods(thing: Any, protocol: type, *, op: str, code: str, what: str, required: tuple[str, ...] = ()) -> None:
    """Check the methods of an object against those of a protocol.

    Args:
        thing: The object.
        protocol: The protocol.
        op: The op that it is given for.
        code: The code of the error.
        what: What the object is.
        required: The methods without a default.

    Raises:
        PluginError: one is missing, misspelt, no method, or takes other arguments.
    """
    known = methods_of(protocol)
    for name, meant in misspelt_methods(thing, protocol, required):
        raise refuse(code, f"{what} has the method {name}, which means nothing", op, hint=meant)
    for name in known:
        is_own = is_written(thing, name, protocol)
        if name in required and not is_own:
            message = f"{what}, {type(thing).__name__}, lacks the method {name}"
            raise refuse(code, message, op, hint=f"write def {name}{_signature(protocol, name)}")
        if not is_own:
            continue
        method = getattr(thing, name)
        if not callable(method):
            raise refuse(code, f"{what} has {name} = {shown(method)}, which is not a method", op)
        check_callable(method, op=op, code=code, what=f"{name} of {what}", arguments=_arguments_of(protocol, name))


@cache
def _arguments_of(protocol: type, name: str) -> tuple[str, ...]:
    """Return the names of the arguments of a protocol's method, without self."""
    return tuple(inspect.signature(getattr(protocol, name)).parameters)[1:]


def check_callable(
    function: Any, *, op: str, code: str, what: str, arguments: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    """Check that a function can be called with some arguments, as far as its signature tells.

    Args:
        function: The function.
        op: The op that it is given for.
        code: The code of the error.
        what: What it is.
        arguments: The names of the arguments that it gets.
        optional: The names of those that it gets besides if it wants them.

    Raises:
        PluginError: it takes others, or it is a generator or a coroutine.
    """
    for count in range(len(arguments), len(arguments) + len(optional) + 1):
        if _plainly_takes(function, count):
            return
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(code, f"{what} is a coroutine (async def)", op, hint="write def, it is called and not awaited")
    if inspect.isgeneratorfunction(function) and what == "the rule function":
        raise refuse(code, f"{what} is a generator", op, hint="write return instead of yield")
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return
    reason = _misfit(signature, arguments)
    for count in range(1, len(optional) + 1):
        reason = reason and _misfit(signature, (*arguments, *optional[:count]))
    if reason:
        wanted = ", ".join(arguments) + "".join(f"[, {name}]" for name in optional)
        hint = f"it is called with ({wanted})" + ("; is self missing?" if _lacks_self(function) else "")
        raise refuse(code, f"{what} does not take its arguments: {reason}", op, hint=hint)


def is_function_of(function: Any, count: int) -> bool:
    """Return whether this is a plain function, without attributes, that takes this number of arguments."""
    return type(function) is FunctionType and not function.__dict__ and _code_takes(function, count)


def _plainly_takes(function: Any, count: int) -> bool:
    """Return whether something callable of an ordinary kind takes this number of arguments; faster than a signature."""
    if type(function) is FunctionType and not function.__dict__:
        return _code_takes(function, count)
    if hasattr(function, "__signature__"):
        return False
    if isinstance(function, partial) and not function.keywords:
        function, count = function.func, count + len(function.args)
    if isinstance(function, MethodType):
        function, count = function.__func__, count + 1
    elif not isinstance(function, FunctionType) and not isinstance(function, type | partial):
        function, count = getattr(type(function), "__call__", None), count + 1  # noqa: B004 - its code is looked at
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    return _code_takes(function, count)


def _code_takes(function: FunctionType, count: int) -> bool:
    """Return whether the code of a function takes this number of positional arguments."""
    code = function.__code__
    least = code.co_argcount - len(function.__defaults__ or ())
    fits = count >= least if code.co_flags & inspect.CO_VARARGS else least <= count <= code.co_argcount
    return fits and not code.co_kwonlyargcount and not code.co_flags & _NO_FUNCTION


def _misfit(signature: inspect.Signature, arguments: tuple[str, ...]) -> str:
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return describe_error(error).removeprefix("TypeError: ")
    return ""


def _lacks_self(function: Callable[..., Any]) -> bool:
    names = list(signature_of(getattr(function, "__func__", function)).parameters)
    return inspect.ismethod(function) and not (names and names[0] == "self")


@cache
def methods_of(protocol: type) -> tuple[str, ...]:
    """Return the names of the methods of a protocol."""
    return tuple(name for name, item in vars(protocol).items() if inspect.isfunction(item) and name.startswith(_WORDS))


def misspelt_methods(thing: Any, protocol: type, required: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return the methods of an object whose names are nearly those of a protocol, with a hint for each.

    Names that are only like the one of a method that must be written are among them where that is missing.
    """
    missing = [name for name in methods_of(protocol) if not _is_own(thing, name, protocol)]
    needed = [name for name in missing if name in required]
    misspelt = []
    for name in dir(type(thing)):
        if name.startswith("_") or hasattr(protocol, name) or not callable(getattr(type(thing), name)):
            continue
        meant = did_you_mean(name, needed) or did_you_mean(name, missing, likeness=_NEARLY)
        if meant:
            misspelt.append((name, meant))
    return misspelt


def _is_own(thing: Any, name: str, protocol: type) -> bool:
    """Return whether an object has a method of a protocol other than by inheritance from a class of this package.

    Who extends `LoopDataFlow` may misspell a method that it has, too.
    """
    home = next((class_ for class_ in type(thing).__mro__ if name in vars(class_)), None)
    is_inherited = home is not type(thing) and home is not None and home.__module__.partition(".")[0] == "shardy_py"
    return not is_inherited and is_written(thing, name, protocol)


def is_written(thing: Any, name: str, protocol: type) -> bool:
    """Return whether an object has a method of a protocol, other than the default that it may inherit."""
    if name in getattr(thing, "__dict__", ()):
        return True
    method = getattr(type(thing), name, None)
    return method is not None and method is not getattr(protocol, name)


def _signature(protocol: type, name: str) -> str:
    parameters = ", ".join(inspect.signature(getattr(protocol, name)).parameters)
    return f"({parameters})"
