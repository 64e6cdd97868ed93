"""Map from ids of values or ops to numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = -1


class IdMap(Mapping[int, int]):
    """Mapping from ids, which a program gives out in order, to numbers that are not negative.

    It takes a third of the memory of a dictionary.

    Attributes:
        numbers: Id to number; `ABSENT` for ids without one. For loops that cannot afford a call for each id.
    """

    __slots__ = ("numbers",)

    def __init__(self, size: int) -> None:
        """Return an empty mapping for the ids below ``size``."""
        self.numbers = [ABSENT] * size

    def __setitem__(self, id_: int, number: int) -> None:
        self.numbers[id_] = number

    def __getitem__(self, id_: int) -> int:
        number = self.get(id_)
        if number is None:
            raise KeyError(id_)
        return number

    def get(self, id_: int, default: Any = None) -> Any:
        """Return the number of an id, or the default for one that has none or is newer than the mapping."""
        number = self.numbers[id_] if 0 <= id_ < len(self.numbers) else ABSENT
        return default if number == ABSENT else number

    def __iter__(self) -> Iterator[int]:
        return (id_ for id_, number in enumerate(self.numbers) if number != ABSENT)

    def __len__(self) -> int:
        return len(self.numbers) - self.numbers.count(ABSENT)
