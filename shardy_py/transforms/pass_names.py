"""Passes by name: those of this package and of plugins, and the text of pipelines.

The text is MLIR's: ``sdy-a{option=1},sdy-b``, with or without the anchors ``builtin.module(...)`` and
``func.func(...)``, which make no difference here: every pass knows itself what it runs on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError, unknown_name
from shardy_py.extensions import PASS_ROOMS
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins import Registry
from shardy_py.plugins.installed import installed_registry
from shardy_py.support.late_patterns import late_pattern
from shardy_py.transforms.pass_options import make_pass, split_options
from shardy_py.transforms.plugin_passes import guard_pass

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ANCHORS = ("any", "builtin.module", FUNCTION)
_ROOM = "shardy_py.transforms"
_CLASS_OR_NAME = late_pattern(r'^class (\w+)|^    name: ClassVar\[str\] = "([^"]+)"', re.MULTILINE)


@cache
def bundled_passes() -> Mapping[str, str]:
    """Return the passes and pipelines of this package: name to ``module:class``, sorted.

    A pass is named in its own file only. The files are read and not imported, as a command needs few of the passes.
    """
    from importlib.resources import files

    rooms = (_ROOM, *PASS_ROOMS)
    return MappingProxyType(dict(sorted(item for room in rooms for item in _named_in(files(room), room))))


def _named_in(folder: Traversable, module: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _named_in(item, f"{module}.{item.name}")
        elif item.name.endswith(".py"):
            yield from _named_in_file(item.read_text(encoding="utf-8"), f"{module}.{item.name.removesuffix('.py')}")


def _named_in_file(source: str, module: str) -> Iterator[tuple[str, str]]:
    class_ = ""
    for match in _CLASS_OR_NAME.finditer(source):
        class_ = match[1] or class_
        if match[2]:
            yield match[2], f"{module}:{class_}"


def get_pass(name: str, registry: Registry | None = None) -> type[Any]:
    """Return the class of a pass or of a pipeline.

    Args:
        name: The name, one of `bundled_passes` or of a plugin.
        registry: The registry with the passes of plugins; by default that of the installed ones.

    Raises:
        OptionError: there is no pass of that name.
    """
    class_ = find_pass(name, registry)
    if class_ is None:
        known = [*bundled_passes(), *_registry(registry).passes]
        raise OptionError(unknown_name("unknown-pass", f"there is no pass {name!r}", name, known))
    return class_


def find_pass(name: str, registry: Registry | None = None) -> type[Any] | None:
    """Return the class of a pass or of a pipeline, or None if there is none.

    Args:
        name: The name.
        registry: The registry with the passes of plugins; by default that of the installed ones.
    """
    path = bundled_passes().get(name)
    if path is None:
        return _registry(registry).passes.get(name)
    module, class_ = path.split(":")
    pass_class: type[Any] = getattr(import_module(module), class_)
    return pass_class


def parse_pass(name: str, options: str = "", *, registry: Registry | None = None) -> tuple[Pass, ...]:
    """Return the passes of a name and the text of its options, ``a=1 b=2``: one, or those of a pipeline.

    Args:
        name: The name.
        options: The text.
        registry: The registry with the passes of plugins; by default that of the installed ones.

    Raises:
        OptionError: an unknown pass or option, or a value that does not fit.
    """
    class_, values = get_pass(name, registry), split_options(options)
    if name not in bundled_passes():
        return (guard_pass(name, class_, _registry(registry), lambda: make_pass(class_, values)),)
    item = make_pass(class_, values)
    passes: tuple[Pass, ...] = getattr(item, "passes", (item,))
    return passes


def parse_pipeline(text: str, *, registry: Registry | None = None) -> tuple[Pass, ...]:
    """Return the passes of a pipeline, in order.

    >>> [item.name for item in parse_pipeline("builtin.module(sdy-add-data-flow-edges,func.func(sdy-basic-propagate))")]
    ['sdy-add-data-flow-edges', 'sdy-basic-propagate']

    Args:
        text: The text of the pipeline.
        registry: The registry with the passes of plugins; by default that of the installed ones.

    Raises:
        OptionError: malformed text, an unknown pass or option, or a value that does not fit.
    """
    return tuple(
        item for name, options in split_pipeline(text) for item in parse_pass(name, options, registry=registry)
    )


def split_pipeline(text: str) -> tuple[tuple[str, str], ...]:
    """Return the names of a pipeline's passes with the texts of their options, in order.

    >>> split_pipeline("builtin.module(a{limit=3},b)")
    (('a', 'limit=3'), ('b', ''))

    Raises:
        OptionError: the text is malformed.
    """
    return tuple(_split_items(text))


def _registry(registry: Registry | None) -> Registry:
    return registry or installed_registry(skip_broken=True)


def _split_items(text: str) -> Iterator[tuple[str, str]]:
    for item in _split(text):
        anchor = next((anchor for anchor in ANCHORS if item.startswith(f"{anchor}(") and item.endswith(")")), None)
        if anchor is not None:
            yield from _split_items(item[len(anchor) + 1 : -1])
            continue
        name, brace, options = item.partition("{")
        if brace and not options.endswith("}"):
            raise _malformed(text, f"{item!r} has no closing brace")
        yield name.strip(), options[:-1]


def _split(text: str) -> Sequence[str]:
    """Split at the commas outside parentheses and braces."""
    items, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
            if depth < 0:
                raise _malformed(text, f"there is a {char!r} too many")
        elif char == "," and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    if depth:
        raise _malformed(text, "a closing parenthesis or brace is missing")
    items.append(text[start:].strip())
    if items == [""]:
        return ()
    if "" in items:
        raise _malformed(text, "a pass name is missing")
    return items


def _malformed(text: str, message: str) -> OptionError:
    return OptionError(Diagnostic("malformed-pipeline", f"{message} in the pipeline {text!r}"))
