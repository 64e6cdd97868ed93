"""The decorators of values."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from shardy_py import values


def _classes(module: Any, **options: Any) -> list[Any]:
    """Values of the same classes, made by attrs or by this package."""

    @module.frozen(**options)
    class Point:
        x: int
        _hidden: str = attrs.field(default="h", repr=False)
        shown: float = attrs.field(default=1.5, repr=lambda value: f"<{value}>")
        later: list[int] = attrs.field(factory=list, init=False)

    @module.frozen
    class Point3(Point):
        z: int = 0

    @module.define(eq=False)
    class Node:
        name: str
        next: Any = None
        unset: int = attrs.field(init=False)

    node = Node("a")
    node.next = [node]

    @module.define
    class Own:
        x: int = 0

        def __repr__(self) -> str:
            return f"own {self.x}"

    return [Point(1), Point("a'b"), Point3(1, z=2), node, Own(3)]


@pytest.mark.parametrize("options", [{}, {"slots": False}, {"eq": False}, {"kw_only": False, "cache_hash": True}])
def test_a_value_is_shown_as_attrs_shows_it(options: dict[str, Any]) -> None:
    """The common text is the one of attrs: names, hidden fields, own formats, cycles, subclasses, own methods."""
    ours, theirs = _classes(values, **options), _classes(attrs, **options)
    assert [repr(value) for value in ours] == [repr(value) for value in theirs]


def test_the_method_is_shared() -> None:
    """No class gets a text method of its own, unless it asks for one."""
    ours = _classes(values)
    assert {type(value).__repr__ for value in ours[:4]} == {values.show_fields}
    assert values.frozen(repr=True)(type("Other", (), {})).__repr__ is not values.show_fields


def test_the_rest_is_as_attrs_has_it() -> None:
    """Equality, hashes, changes and refused assignments are those of attrs."""
    point = _classes(values)[0]
    assert attrs.evolve(point, x=1) == point != attrs.evolve(point, x=2)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3
