"""The work of every command grows as its program does: counted in lines of Python that run, not in time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

from shardy_py.propagation.step_outcomes import SHARED
from tests.budget.commands import COMMANDS
from tests.budget.growing_programs import GROWTHS, NUMBERS

MOST = 1.3
"""The largest exponent of the growth of work."""
QUICK = [
    ("explain", "equal_operands"),
    ("explain", "operands_with_refusals"),
    ("propagate", "results"),
    ("cost", "reshards"),
    ("cost", "carried_values"),
    ("propagate", "user_priorities"),
    ("explain", "user_priorities"),
    ("explain", "group_members"),
    ("explore", "dimensions"),
    ("advise", "dimensions"),
    ("advise", "disagreeing_operands"),
    ("propagate", "functions"),
]
QUICK_NUMBERS = [("cost", name) for name in NUMBERS]
SQUARES = {
    ("explore", "disagreeing_operands"): "the page has a row for each pair of tensors of an op that disagree",
}
"""What the text that a command prints is as long as the square of, with the reason."""


def lines_of(run: Callable[[], None]) -> int:
    """Return how many lines of Python run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def exponent_of(run: Callable[[int], None], size: int) -> float:
    """Return the exponent with which work grows, from what is added as a program of some size is doubled twice.

    A process keeps rules and outcomes of steps of programs up to some number, so that what ran before would count:
    a program of another size runs first, and outcomes are forgotten.
    """
    run(size + 1)
    counts = []
    for factor in (1, 2, 4):
        SHARED._kept.clear()
        counts.append(lines_of(lambda factor=factor: run(factor * size)))
    first, second, third = counts
    added = max(second - first, first // 20)
    return math.log2(max(third - second, 1) / added)


def test_the_exponent_is_that_of_the_work() -> None:
    """Work that is linear, quadratic and constant is told apart."""

    def loop(count: int) -> None:
        for _ in range(count):
            pass

    assert exponent_of(lambda size: loop(100 * size), 10) == pytest.approx(1, abs=0.05)
    assert exponent_of(lambda size: loop(size * size), 50) == pytest.approx(2, abs=0.05)
    assert exponent_of(lambda size: loop(1000), 10) < 0


@pytest.mark.parametrize(("command", "growth"), QUICK)
def test_work_is_linear_where_it_was_not(command: str, growth: str) -> None:
    """What once was quadratic is linear."""
    assert exponent_of(lambda size: COMMANDS[command](GROWTHS[growth](size)), 24) <= MOST


@pytest.mark.parametrize(("command", "growth"), QUICK_NUMBERS)
def test_costs_do_not_depend_on_numbers(command: str, growth: str) -> None:
    """A program of the same text with larger numbers takes no more work, whatever the numbers."""
    program = NUMBERS[growth]
    COMMANDS[command](program(64))
    small, large = (lines_of(lambda number=number: COMMANDS[command](program(number))) for number in (72, 2**57))
    assert large <= 2 * small


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("growth", GROWTHS)
def test_work_is_linear(command: str, growth: str) -> None:
    """Twice as large a program takes twice the work, of every command, in whatever it grows."""
    size = 40 + 2 * list(COMMANDS).index(command)  # No other command ran this program, or a part of what it keeps.
    exponent = exponent_of(lambda size: COMMANDS[command](GROWTHS[growth](size)), size)
    most = 2 if (command, growth) in SQUARES else MOST
    assert exponent <= most, f"work grows with the power {exponent:.2f}"


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"cost"}))
@pytest.mark.parametrize("growth", NUMBERS)
def test_work_does_not_depend_on_numbers(command: str, growth: str) -> None:
    """No command makes a list whose length is a number in the program."""
    test_costs_do_not_depend_on_numbers(command, growth)
