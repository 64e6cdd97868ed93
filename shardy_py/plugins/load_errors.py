"""Plugins to load, and the errors for those that cannot be loaded."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, PluginError, ShardyError, did_you_mean
from shardy_py.guards.error_texts import describe_error, diagnostics_of, location_in_trace, name_hint
from shardy_py.values import frozen

_OWN_CODES = frozenset(("broken-plugin", "invalid-hook", "plugin-import"))


@frozen
class Candidate:
    """A plugin that is not imported yet.

    Args:
        name: Its name.
        origin: The distribution and version it comes from, or "".
        load: Imports it.
    """

    name: str
    origin: str
    load: Callable[[], object]


def broken(candidate: Candidate, reason: str, *, hint: str = "") -> Diagnostic:
    """Return the diagnostic for a plugin that cannot be loaded."""
    origin = f" from {candidate.origin}" if candidate.origin else ""
    return Diagnostic(
        "broken-plugin",
        f"plugin {candidate.name!r}{origin} cannot be loaded: {reason}",
        hint=f"{hint}; or {_way_out(candidate)}" if hint and candidate.origin else hint or _way_out(candidate),
    )


def _way_out(candidate: Candidate) -> str:
    if not candidate.origin:
        return "mend it, or leave it out"
    return f"its ops have no rules without it; mend it, block it by its name {candidate.name!r}, or uninstall it"


@contextmanager
def blame(candidate: Candidate) -> Iterator[None]:
    """Turn every exception of a plugin into an error that names the plugin; an interrupt passes.

    Raises:
        PluginError: something else came out.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except PluginError as error:
        if diagnostics_of(error)[0].code in _OWN_CODES:
            raise
        raise PluginError(as_broken(candidate, error)) from error
    except ShardyError as error:
        raise PluginError(as_broken(candidate, error)) from error
    except BaseException as error:
        location = location_in_trace(error)
        raise PluginError(
            evolve(broken(candidate, describe_error(error), hint=call_hint(error)), location=location)
        ) from error


def as_broken(candidate: Candidate, error: ShardyError) -> Diagnostic:
    """Return the diagnostic for a plugin in which one of our own errors was raised."""
    items = diagnostics_of(error)
    first = items[0]
    message = "; ".join(f"'{item.op}' op: {item.message}" if item.op else item.message for item in items)
    hint = "; ".join(dict.fromkeys(item.hint for item in items if item.hint))
    return evolve(
        broken(candidate, message, hint=hint),
        location=location_in_trace(error) or first.location,
        excerpt=first.excerpt,
    )


def call_hint(error: BaseException) -> str:
    """Return a hint for a misspelt argument of a function of this package, or for an unknown name of it."""
    text = describe_error(error)
    argument = re.search(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'", text)
    if argument:
        return did_you_mean(argument[2], _parameters(argument[1]))
    if "Dialect.op() takes 2 positional arguments" in text:
        return "all but the name of the op go by their names: rule=..., traits=[...]"
    return name_hint(error)


def _parameters(called: str) -> Iterable[str]:
    """Return the parameters of a public function, class or method by its qualified name, none for others."""
    class_: Any = sys.modules["shardy_py.plugins"]
    for part in called.removesuffix(".__init__").split("."):
        class_ = getattr(class_, part, None)
    return inspect.signature(class_).parameters if callable(class_) else ()


@contextmanager
def located(plugin: object) -> Iterator[None]:
    """Add the file of a plugin to its errors without a location.

    Raises:
        PluginError: one came out.
    """
    try:
        yield
    except PluginError as error:
        file = getattr(plugin, "__file__", None)
        if not isinstance(file, str):
            raise
        items = [evolve(item, location=item.location or file) for item in error.diagnostics]
        raise PluginError(*items) from error.__cause__
