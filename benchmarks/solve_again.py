"""Solving a problem again that is compiled and was solved before."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from attrs import frozen

from shardy_py.cost.session import Session
from shardy_py.oracle.conformance import reference_registry
from shardy_py.schedule.builtin import BUILTIN

SESSIONS = 3
"""Number of sessions; each solves every schedule once."""


@frozen
class SolvedAgain:
    """Times of solving in seconds: medians over sessions.

    Args:
        first: With the default schedule, when nothing is known yet.
        again: Afterwards with other schedules, by name, one after the other.
    """

    first: float
    again: dict[str, float]


def solve_again(fresh: Callable[[], Any]) -> SolvedAgain:
    """Open sessions of a module; in each, solve with the default schedule, then with every other built-in one.

    Args:
        fresh: Returns a copy of the module.
    """
    names = ["default", *(name for name in BUILTIN if name != "default")]
    sessions = [_seconds(fresh(), names) for _ in range(SESSIONS)]
    times = {name: median(seconds[name] for seconds in sessions) for name in names}
    return SolvedAgain(times.pop("default"), times)


def _seconds(module: Any, names: list[str]) -> dict[str, float]:
    session = Session.open(module, registry=reference_registry())
    times = {}
    for name in names:
        gc.collect()
        begin = perf_counter()
        session.solve(name)
        times[name] = perf_counter() - begin
    return times
