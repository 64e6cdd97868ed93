"""Texts for objects and exceptions of plugins, even if their own methods fail."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from typing import Any

from shardy_py.errors import Diagnostic, ShardyError, did_you_mean
from shardy_py.values import without_addresses

_LONG = 200


def diagnostics_of(error: ShardyError) -> list[Diagnostic]:
    """Return the diagnostics of one of our errors; code of plugins may have raised it with a text, or with nothing."""
    given = error.diagnostics or (type(error).__name__,)
    return [item if isinstance(item, Diagnostic) else Diagnostic("plugin-failed", shown_text(item)) for item in given]


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
    return did_you_mean(name, known) or did_you_mean(name, known, likeness=0.5)


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
        return f"a {type(thing).__name__}"
    return text if len(text) <= _LONG and "\n" not in text else f"a {type(thing).__name__}"
