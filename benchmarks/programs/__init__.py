"""The programs, each made by a script; nothing is imported before one is made."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen
class Program:
    """A program to measure.

    Args:
        name: What tables call it.
        make: Returns its text.
    """

    name: str
    make: Callable[[], str]


def _gpt(layers: int, *, scanned: bool = False) -> Callable[[], str]:
    def make() -> str:
        from benchmarks.programs.gpt import gpt_step

        return gpt_step(layers, scanned=scanned)

    return make


PROGRAMS = (
    Program("gpt-2", _gpt(2)),
    Program("gpt-8", _gpt(8)),
    Program("gpt-32", _gpt(32)),
    Program("gpt-128", _gpt(128)),
    Program("gpt-32-scanned", _gpt(32, scanned=True)),
)
