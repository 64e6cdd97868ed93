"""Functions whose keywords are the fields of a value: names, defaults, types and help stand with the value only."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs

from shardy_py.errors import did_you_mean
from shardy_py.support.arguments import Check, check_arguments, checks_of

_P = ParamSpec("_P")
_V = TypeVar("_V")
_R = TypeVar("_R")
_C = TypeVar("_C")


def takes(value: Callable[_P, _V]) -> Callable[[Callable[[_V], _R]], Callable[_P, _R]]:
    """Return a decorator of functions of one value, which makes the fields of the value their arguments.

    Args:
        value: The class of the value, an attrs class. Arguments of the wrong simple type are refused.
    """

    def decorate(function: Callable[[_V], _R]) -> Callable[_P, _R]:
        make = _maker(value, function.__name__)

        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return function(make(args, kwargs))

        _describe(call, value, function)
        return call

    return decorate


def method_takes(
    value: Callable[_P, _V],
) -> Callable[[Callable[[_C, _V], _R]], Callable[Concatenate[_C, _P], _R]]:
    """Return a decorator as `takes` does, for methods: the class or the object comes first."""

    def decorate(function: Callable[[_C, _V], _R]) -> Callable[Concatenate[_C, _P], _R]:
        make = _maker(value, function.__name__)

        @wraps(function)
        def call(self: _C, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            return function(self, make(args, kwargs))

        _describe(call, value, function, own_count=1)
        return call

    return decorate


def keywords(*values: Any) -> dict[str, Any]:
    """Return the fields of attrs values by name, as the keywords of a function that takes them."""
    return {item.name: getattr(value, item.name) for value in values for item in attrs.fields(type(value))}


def narrow(arguments: Any, class_: type[_V]) -> _V:
    """Return the fields that an attrs value has from one of its base classes, as a value of that class."""
    names = [item.name for item in attrs.fields(class_)]  # type: ignore[arg-type]
    return class_(**{name: getattr(arguments, name) for name in names})


@cache
def help_of(class_: type) -> Mapping[str, str]:
    """Return the help of the fields of an attrs class, by name, one line each, from its docstring and its bases'."""
    texts: dict[str, str] = {}
    for base in reversed(class_.__mro__):
        _, _, after = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("\nArgs:\n")
        for item in re.split(r"\n(?=    \w+: )", "\n" + re.split(r"\n(?=\S)", after)[0]):
            name, colon, text = item.strip().partition(": ")
            if colon:
                texts[name] = " ".join(text.split())
    return texts


def _maker(value: Callable[..., _V], name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], _V]:
    """Return a function that makes the value from the arguments of a call of the function of a name."""
    class_: Any = value
    positional = [item.name for item in attrs.fields(class_) if not item.kw_only]
    checks: dict[str, Check] = {}
    for base in reversed(class_.__mro__):
        if attrs.has(base):
            checks |= checks_of(vars(base).get("__annotations__", {}), vars(import_module(base.__module__)))

    def make(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _V:
        check_arguments(name, checks, (*zip(positional, args, strict=False), *kwargs.items()))
        try:
            return value(*args, **kwargs)
        except TypeError as error:
            message = str(error).replace(f"{class_.__name__}.__init__()", f"{name}()")
            raise TypeError(message + _hint(class_, kwargs)) from None

    return make


def _hint(class_: type[attrs.AttrsInstance], call_keywords: Mapping[str, Any]) -> str:
    """Return where an unknown keyword belongs, or the names that it may have been meant to be."""
    fields = attrs.fields_dict(class_)
    for item in fields.values():
        inner = type(item.default)
        known = attrs.fields_dict(inner) if attrs.has(inner) else {}
        name = next((name for name in call_keywords if name not in fields and name in known), None)
        if name is not None:
            return f"; give {item.name}={inner.__name__}({name}=...), from {inner.__module__}"
    unknown = next((name for name in call_keywords if name not in fields), None)
    close = did_you_mean(unknown, fields) if unknown is not None else ""
    return f"; {close}" if close else ""


def _describe(call: Any, value: Any, function: Any, *, own_count: int = 0) -> None:
    """Give a function the signature and the help of the arguments that it takes."""
    before = list(inspect.signature(function).parameters.values())[:own_count]
    after = inspect.signature(value).parameters.values()
    returns = function.__annotations__.get("return", inspect.Signature.empty)
    call.__signature__ = inspect.Signature([*before, *after], return_annotation=returns)
    summary, *sections = re.split(r"\n\n(?=Returns:|Raises:)", inspect.getdoc(function) or "")
    arguments = "\n".join(f"    {name}: {help_of(value).get(name, '')}" for name in inspect.signature(value).parameters)
    call.__doc__ = "\n\n".join((summary, f"Args:\n{arguments}", *sections))
