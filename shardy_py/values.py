"""The decorators of values: those of attrs, with methods that are not compiled for each class.

To compile its methods is half of what making a class costs, and a command makes hundreds of them before it can begin.
One `__repr__` serves all classes, and plain ones compare the tuples of their fields, and hash them where they are
frozen; each does what the method of attrs would. Values that are compared in inner loops have ``cache_hash=True``, and
the methods of attrs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

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
    """Return the function that gives some fields of a value."""
    found = tuple(names)
    return attrgetter(*found) if found else type


@recursive_repr()
def show_fields(value: Any) -> str:
    """Return the name of a value's class with its fields, as attrs writes them."""
    cls = type(value)
    parts = []
    for item in cls.__attrs_attrs__:
        if item.repr is False:
            continue
        content = getattr(value, item.name, attrs.NOTHING)
        parts.append(f"{item.name}={repr(content) if item.repr is True else item.repr(content)}")
    return f"{cls.__qualname__.rsplit('>.', 1)[-1]}({', '.join(parts)})"


@frozen
class NoFields:
    """A frozen value without fields, equal to all of its class.

    Such classes are derived from this one and not decorated: attrs has nothing to do for them, and takes its time.
    """
