"""The programs, each made by a script; nothing heavy is imported before one is made."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen
class Program:
    """A program to measure.

    Args:
        name: The name in tables.
        make: Returns its text.
        is_file: Whether it was given as a file, and not made here.
    """

    name: str
    make: Callable[[], str]
    is_file: bool = False


def _gpt(layers: int, *, scanned: bool = False) -> Callable[[], str]:
    def make() -> str:
        from benchmarks.programs.gpt import gpt_step

        return gpt_step(layers, scanned=scanned)

    return make


def _gpt_loss(layers: int) -> Callable[[], str]:
    def make() -> str:
        from benchmarks.programs.gpt import gpt_loss

        return gpt_loss(layers)

    return make


def _convolution() -> str:
    from benchmarks.programs.convolution import convolution_step

    return convolution_step()


def _beam_search() -> str:
    from benchmarks.programs.beam_search import beam_search

    return beam_search()


def _distinct() -> str:
    from benchmarks.programs.distinct import distinct_program

    return distinct_program(10_000)


PROGRAMS = (
    Program("gpt-1-loss", _gpt_loss(1)),
    Program("gpt-4-loss", _gpt_loss(4)),
    Program("gpt-2", _gpt(2)),
    Program("gpt-8", _gpt(8)),
    Program("gpt-32", _gpt(32)),
    Program("gpt-128", _gpt(128)),
    Program("gpt-32-scanned", _gpt(32, scanned=True)),
    Program("convolution", _convolution),
    Program("beam-search", _beam_search),
    Program("distinct", _distinct),
)
"""Those that run unless others are asked for."""
