"""The decorators of values: those of attrs, with one `__repr__` that all classes share.

To compile a `__repr__` for each class is a third of what making a class costs, and a command makes hundreds of them
before it can begin. The text is the one that attrs would give.
"""

from __future__ import annotations

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


def _decorate(make: Any, cls: type | None, options: dict[str, Any]) -> Any:
    if cls is None:
        return lambda cls: _decorate(make, cls, options)
    if "repr" in options or "__repr__" in cls.__dict__:
        return make(cls, **options)
    cls.__repr__ = show_fields  # type: ignore[assignment]
    return make(cls, repr=False, **options)


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
