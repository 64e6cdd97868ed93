"""Tables of a page: distinct things by number, and columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import field

from shardy_py.values import define

_T = TypeVar("_T", bound=Hashable)


@define(eq=False)
class Interned(Generic[_T]):
    """Distinct things, numbered in the order in which they come.

    Attributes:
        numbers: Thing to number.
    """

    numbers: dict[_T, int] = field(factory=dict)

    def __call__(self, thing: _T) -> int:
        """Return the number of a thing."""
        return self.numbers.setdefault(thing, len(self.numbers))

    def __iter__(self) -> Iterable[_T]:
        return iter(self.numbers)


@define(eq=False)
class Columns:
    """Rows, column by column.

    Attributes:
        columns: Name to the values of all rows.
    """

    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, *names: str) -> Columns:
        """Return a table without rows.

        Args:
            names: The names of its columns.
        """
        return cls({name: [] for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def add(self, **row: Any) -> int:
        """Add a row, with a value for each column, and return its number."""
        for name, column in self.columns.items():
            column.append(row[name])
        return len(self) - 1

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def to_json(self) -> Mapping[str, list[Any]]:
        """Return the columns as plain lists."""
        return self.columns
