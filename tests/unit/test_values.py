"""The decorators of values."""

from __future__ import annotations

import copy
from collections.abc import Hashable
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


def _compared(module: Any, **options: Any) -> list[Any]:
    """Values of the same classes to compare, made by attrs or by this package."""

    @module.frozen(**options)
    class Pair:
        x: Any
        y: Any = 0
        place: str = attrs.field(default="", eq=False)
        table: dict[str, int] = attrs.field(factory=dict, hash=False)

    @module.frozen(**options)
    class Same(Pair):
        pass

    @module.frozen(**options)
    class Empty:
        pass

    class Plain(Pair):
        pass

    pairs = [Pair(1), Pair(1.0, place="here"), Pair(2), Pair(1, table={"a": 1}), Pair((1, 0)), Pair("x")]
    return [*pairs, Same(1), Same(1), Plain(1), Empty(), Empty(), 1, None]


@pytest.mark.parametrize("options", [{}, {"slots": False}, {"kw_only": False}, {"cache_hash": True}, {"eq": False}])
def test_values_are_compared_as_attrs_compares_them(options: dict[str, Any]) -> None:
    """The same pairs are equal: of one class, with all fields equal that count; and they have one hash."""
    ours, theirs = _compared(values, **options), _compared(attrs, **options)
    for item, their_one in zip(ours, theirs, strict=True):
        for other, their_other in zip(ours, theirs, strict=True):
            assert (item == other, item != other) == (their_one == their_other, their_one != their_other)
            assert item != other or hash(item) == hash(other)


def test_own_comparisons_stay() -> None:
    """A class that compares its values itself keeps that."""

    @values.frozen
    class Own:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert Own(1) == 5
    assert Own.__hash__ is None


def test_the_rest_is_as_attrs_has_it() -> None:
    """Equality, hashes, changes and refused assignments are those of attrs."""
    point = _classes(values)[0]
    assert attrs.evolve(point, x=1) == point != attrs.evolve(point, x=2)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3


def test_notebooks_show_values_by_their_texts() -> None:
    """A value with a text of its own, and no other way to show it, is shown by it; others as Python does."""

    class Printer:
        def text(self, shown: str) -> None:
            self.shown = shown

    @values.frozen
    class Point:
        x: int

        def __str__(self) -> str:
            return f"<{self.x}>"

    @values.frozen
    class Plain:
        x: int

    printer = Printer()
    Point(3)._repr_pretty_(printer, False)  # type: ignore[attr-defined]
    assert printer.shown == "<3>"
    assert not hasattr(Plain(3), "_repr_pretty_")


def test_values_without_fields() -> None:
    """They are those that attrs would make: equal to their own class alone, hashed, frozen, shown by their name."""

    class First(values.NoFields):
        pass

    class Second(values.NoFields):
        pass

    assert First() == First() != Second()
    assert len({First(), First(), Second()}) == 2
    assert repr(First()) == "First()"
    assert attrs.fields(First) == ()
    assert copy.copy(First()) == attrs.evolve(First()) == First()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        First().x = 1  # type: ignore[attr-defined]


def _equality(module: Any) -> list[tuple[Any, ...]]:
    """What is equal and what has a hash among classes that can change, that derive from others, or are exceptions."""

    @module.define
    class Node:
        name: str
        hidden: int = attrs.field(default=0, eq=False)

    @module.frozen
    class Base:
        x: int

    @module.define
    class Derived(Base):
        y: int

    @module.define
    class Failure(Exception):
        reason: str

    pairs = [
        (Node("a"), Node("a", 1)),
        (Node("a"), Node("b")),
        (Derived(1, 2), Derived(1, 2)),
        (Derived(1, 2), Derived(1, 3)),
        (Base(1), Derived(1, 2)),
        (Failure("a"), Failure("a")),
    ]
    hashed = [isinstance(left, Hashable) and (hash(left) == hash(right)) for left, right in pairs]
    return [(left == right, left != right, is_hashed) for (left, right), is_hashed in zip(pairs, hashed, strict=True)]


def test_equality_is_that_of_attrs() -> None:
    """Whatever a class is made of, its values are equal, and have hashes, where those of attrs are and have."""
    assert _equality(values) == _equality(attrs)


@values.frozen
class _Leaf:
    number: int = 0


@values.frozen
class _Tree:
    items: tuple[Any, ...] = ()
    text: str = ""
    table: Any = None


def test_a_long_value_is_shown_by_the_sizes_of_its_fields() -> None:
    """Collections become their number of items, long texts and values are cut; nested values are short before."""
    tree = _Tree(tuple(map(_Leaf, range(40))), "x" * 100, {"a": 1})
    assert repr(tree) == f"_Tree(items=<40 _Leaf>, text='{'x' * 59}..., table={{'a': 1}})"
    deep: Any = tree
    for _ in range(40):
        deep = _Tree((deep, deep), "y" * 80)
    assert len(repr(deep)) < 1000
    assert len(repr(_Tree(tuple(range(100_000))))) < 1000


@pytest.mark.parametrize(
    "content",
    [(), (1,), [[], {}], {"a": [], "b": {"c": ()}}, {1}, frozenset({2}), frozenset(), set(), ({"x": [None]}, "[]{}")],
    ids=repr,
)
def test_collections_are_shown_as_python_shows_them(content: Any) -> None:
    """Empty and nested ones, too."""
    assert repr(_Tree(table=content)) == f"_Tree(items=(), text='', table={content!r})"


def test_no_address_is_shown() -> None:
    """Objects without a text of their own are shown by their class."""
    shown = repr(_Tree((object(), [object()]), table=len.__class__))
    assert " at 0x" not in shown
    assert "<object object>" in shown


def test_the_full_text_tells_long_values_apart() -> None:
    """Keys are made of it: two values that are shown alike have different full texts."""
    first, second = (_Tree(tuple(map(_Leaf, (*range(400), last)))) for last in (1, 2))
    assert repr(first) == repr(second)
    assert values.show_in_full(first) != values.show_in_full(second)
    assert values.show_in_full(_Tree(table={"a": (first,)})) != values.show_in_full(_Tree(table={"a": (second,)}))
