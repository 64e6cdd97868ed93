"""The one source of every decision of the generator: drawn integers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from shardy_py.values import frozen

T = TypeVar("T")


@frozen
class Choices:
    """Decisions made from integers, so that a seed or Hypothesis can make them.

    Smaller integers give simpler programs: 0 is "no", the first item, the shortest list.

    Args:
        integer: Returns an integer between two bounds, both included.
    """

    integer: Callable[[int, int], int]

    @classmethod
    def from_seed(cls, seed: int) -> Choices:
        """Return the decisions that belong to a seed."""
        return cls(random.Random(seed).randint)

    def chance(self, percent: int) -> bool:
        """Return true in that many of a hundred cases."""
        if percent <= 0:
            return False
        return percent >= 100 or self.integer(0, 99) >= 100 - percent

    def pick(self, items: Sequence[T]) -> T:
        """Return one item."""
        return items[self.integer(0, len(items) - 1)] if len(items) > 1 else items[0]

    def weighted(self, items: Sequence[tuple[int, T]]) -> T:
        """Return one item, each as often as its weight says."""
        point = self.integer(0, sum(weight for weight, _ in items) - 1)
        for weight, item in items:
            point -= weight
            if point < 0:
                return item
        raise ValueError("no items")

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in some order; all zeros keep the order."""
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1) if len(rest) > 1 else 0) for _ in items]

    def some(self, items: Sequence[T], *, low: int = 0, high: int | None = None) -> list[T]:
        """Return between ``low`` and ``high`` of the items, in their own order."""
        number = self.integer(min(low, len(items)), min(len(items) if high is None else high, len(items)))
        indices = set(self.shuffled(range(len(items)))[:number])
        return [item for index, item in enumerate(items) if index in indices]
