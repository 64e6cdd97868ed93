"""A module for the tests of compiled accesses: each function does at one place what it is asked to."""

# ruff: noqa: D103

from __future__ import annotations

from typing import Any

from shardy_py.support.identity import identity


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any = None) -> None:
        self.a = a
        self.b = b

    def plus(self, number: int) -> Any:
        return self.a + number


class Derived(Slotted):
    __slots__ = ()

    def plus(self, number: int) -> Any:
        return self.a + 10 * number


class Other:
    __slots__ = ("b", "a")  # noqa: RUF023 - the other way round

    def __init__(self, a: Any) -> None:
        self.b = "other"
        self.a = a

    def plus(self, number: int) -> Any:
        return self.a - number


class Open:
    a = "of the class"

    def plus(self, number: int) -> Any:
        return number


class Computed:
    @property
    def a(self) -> str:
        return "computed"


class Dynamic:
    def __getattr__(self, name: str) -> str:
        return f"dynamic {name}"


class Counting(dict[Any, Any]):
    def __missing__(self, key: Any) -> str:
        return f"missing {key}"


def read(value: Any) -> Any:
    return value.a


def write(value: Any, new: Any) -> None:
    value.a = new


def call(value: Any, number: int) -> Any:
    return value.plus(number)


def make(class_: Any) -> Any:
    return class_.__new__(class_)


def item(container: Any, key: Any) -> Any:
    return container[key]


def set_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def size(value: Any) -> int:
    return len(value)


def truth(value: Any) -> bool:
    return True if value else False  # noqa: SIM210 - this is what is tested


def less(left: Any, right: Any) -> Any:
    return left < right


def same(left: Any, right: Any) -> Any:
    return left == right


def number_of(value: Any) -> int:
    return identity(value)


def descend(depth: Any) -> Any:
    return descend(depth + 1)


class Endless:
    __slots__ = ()

    def descend(self) -> Any:
        return self.descend()
