"""The decorators of values: those of attrs, with methods that are not compiled for each class.

To compile its methods is half of what making a class costs, and a command makes hundreds of them before it can begin.
One `__repr__` serves all classes, and plain ones compare the tuples of their fields, and hash them where they are
frozen; each does what the method of attrs would, but that a long text becomes a short one. Values that are compared in
inner loops have ``cache_hash=True``, and the methods of attrs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import attrs

if TYPE_CHECKING:
    from attrs import define as define
    from attrs import frozen as frozen
else:

    def define(cls: type | None = None, /, **options: Any) -> Any:
        """Make a class of attrs."""
        return _decorate(attrs.define, cls, options)

    def frozen(cls: type | None = None, /, **options: Any) -> Any:
        """Make a frozen class of attrs."""
        return _decorate(attrs.frozen, cls, options)


def _show_text(value: Any, printer: Any, cycle: bool) -> None:
    """Show a value in IPython and in notebooks by its text, also within lists and dictionaries."""
    printer.text("..." if cycle else str(value))


_PLAIN = frozenset(("kw_only", "repr", "slots"))
"""The options that have nothing to do with comparing."""
_OWN = frozenset(("__eq__", "__ne__", "__hash__"))


def _decorate(make: Any, cls: type | None, options: dict[str, Any]) -> Any:
    if cls is None:
        return lambda cls: _decorate(make, cls, options)
    if "__str__" in cls.__dict__ and "__repr__" not in cls.__dict__:
        cls._repr_pretty_ = _show_text  # type: ignore[attr-defined]
    if "repr" not in options and "__repr__" not in cls.__dict__:
        cls.__repr__ = show_fields  # type: ignore[assignment]
        options = {**options, "repr": False}
    is_frozen = make is attrs.frozen
    # What attrs does for other classes depends on their bases: values of some are hashed, exceptions are not compared.
    if _PLAIN.issuperset(options) and _OWN.isdisjoint(cls.__dict__) and (is_frozen or cls.__bases__ == (object,)):
        return _compare_fields(make(cls, eq=False, **options), is_hashable=is_frozen)
    return make(cls, **options)


def _compare_fields(cls: Any, *, is_hashable: bool) -> Any:
    """Give a class the methods that compare its values, equal where all fields are, and perhaps hash them."""
    fields = cls.__attrs_attrs__
    compared = _getter(item.name for item in fields if item.eq)
    hashed = _getter(item.name for item in fields if (item.eq if item.hash is None else item.hash))

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    cls.__eq__, cls.__hash__ = equal, hash_of if is_hashable else None
    return cls


def _getter(names: Iterable[str]) -> Callable[[Any], Any]:
    """Return a getter of some fields of a value."""
    fields = tuple(names)
    return attrgetter(*fields) if fields else type


def show_fields(value: Any) -> str:
    """Return the name of a value's class with its fields, as attrs writes them; of a long one, only their sizes.

    Addresses of objects are left out, as they are others in every run.
    """
    return _Shower().show_value(value)


def show_in_full(value: Any) -> str:
    """Return the text of a value with all of its fields, however long it is; equal texts mean equal values."""
    cls: Any = type(value)
    if attrs.has(cls) and cls.__repr__ is show_fields:
        return _join(value, [show_in_full(getattr(value, item.name)) for item in _shown_fields(value)])
    if type(value) in (tuple, list):
        return f"[{', '.join(map(show_in_full, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{show_in_full(key)}: {show_in_full(item)}' for key, item in value.items())}}}"
    if hasattr(cls, "repr_in_full"):
        return cast("str", value.repr_in_full())
    return without_addresses(repr(value))


def without_addresses(text: str) -> str:
    """Return a text of Python without the addresses of objects, which differ between runs.

    >>> without_addresses("<function rule at 0x7f09770af060>")
    '<function rule>'
    """
    return re.sub(r" at 0x[0-9a-fA-F]+(?=>)", "", text)


LONGEST = 600
"""The most characters of fields that a value is shown with in full."""
_SHORT = 60
_MOST = 20_000
_COLLECTIONS: dict[Any, tuple[str, str]] = {
    tuple: ("(", ")"),
    list: ("[", "]"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}


class _Shower:
    """Shows a value; the length of the text is limited, as values inside may be shared many times."""

    def __init__(self) -> None:
        self.left = _MOST
        self.around: list[Any] = []

    def show_value(self, value: Any) -> str:
        if self._is_around(value):
            return "..."
        self.around.append(value)
        fields = [(item, getattr(value, item.name, attrs.NOTHING)) for item in _shown_fields(value)]
        texts = [self.show(content) if item.repr is True else str(item.repr(content)) for item, content in fields]
        self.around.pop()
        if sum(map(len, texts)) > LONGEST:
            texts = [_shorten(text, content) for text, (_, content) in zip(texts, fields, strict=True)]
        return _join(value, texts)

    def show(self, content: Any) -> str:
        cls: Any = type(content)
        if self.left < 0:
            return f"<{cls.__name__}>"
        if cls.__repr__ is show_fields:
            return self.show_value(content)
        if cls in _COLLECTIONS and content:
            return self.show_items(content, *_COLLECTIONS[cls])
        text = without_addresses(repr(content))
        self.left -= len(text)
        return text

    def _is_around(self, content: Any) -> bool:
        """Return whether something is shown inside itself."""
        return any(item is content for item in self.around)

    def show_items(self, items: Any, before: str, after: str) -> str:
        if self._is_around(items):
            return f"{before}...{after}"
        self.around.append(items)
        if isinstance(items, dict):
            texts = [f"{self.show(key)}: {self.show(item)}" for key, item in items.items()]
        else:
            texts = [self.show(item) for item in items]
        self.around.pop()
        comma = "," if before == "(" and len(texts) == 1 else ""
        return f"{before}{', '.join(texts)}{comma}{after}"


def _shown_fields(value: Any) -> list[Any]:
    return [item for item in type(value).__attrs_attrs__ if item.repr is not False]


def _join(value: Any, texts: Iterable[str]) -> str:
    parts = (f"{item.name}={text}" for item, text in zip(_shown_fields(value), texts, strict=True))
    return f"{type(value).__qualname__.rsplit('>.', 1)[-1]}({', '.join(parts)})"


def _shorten(text: str, content: Any) -> str:
    """Return the text of a field; a long collection or value is shown by its class and size."""
    if len(text) <= _SHORT:
        return text
    if type(content) in _COLLECTIONS:
        kinds = {type(item).__name__ for item in content}
        return f"<{len(content)} {kinds.pop() if len(kinds) == 1 else 'items'}>"
    return f"{text[:_SHORT]}..." if isinstance(content, str) else f"<{type(content).__name__}>"


@frozen
class NoFields:
    """A frozen value without fields, equal to all of its class.

    Such classes are derived from this one and not decorated: attrs has nothing to do for them, and takes its time.
    """
