"""The fewest shardings inside a program that hold a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shardy_py.plans.write import Pin

Outcome = TypeVar("Outcome")


def fewest_pins(
    pins: Sequence[Pin], outcome: Outcome, price: Callable[[Sequence[Pin]], Outcome | None], trials: int
) -> tuple[Sequence[Pin], Outcome]:
    """Return pins without those that a plan does not need, with its outcome.

    First halves are left out, then quarters, and so on.

    Args:
        pins: The pins.
        outcome: The outcome with all of them.
        price: Returns the outcome with some of them; None if it is worse.
        trials: How many outcomes may be priced.
    """
    size = (len(pins) + 1) // 2
    while size and pins:
        start = 0
        while start < len(pins):
            if not trials:
                return pins, outcome
            rest = [*pins[:start], *pins[start + size :]]
            trials -= 1
            without = price(rest)
            if without is None:
                start += size
            else:
                pins, outcome = rest, without
        size = 0 if size == 1 else (size + 1) // 2
    return pins, outcome
