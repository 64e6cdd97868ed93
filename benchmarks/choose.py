"""Choice of the programs to measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.programs import HUGE, PROGRAMS, Program
from benchmarks.programs.files import programs_in

ALL = {program.name: program for program in (*PROGRAMS, HUGE)}


def choose_programs(names: Iterable[str], *, huge: bool = False) -> Iterator[Program]:
    """Yield programs by name, in the order of the names.

    Args:
        names: Of programs made here, or paths of files and folders; none for all that are made here but the huge one.
        huge: Whether the huge one comes last.

    Raises:
        OSError: there is no such program, nor a file or a folder.
        ValueError: a file is of another kind.
    """
    chosen = list(names) or [program.name for program in PROGRAMS]
    for name in chosen:
        if name in ALL:
            yield ALL[name]
        else:
            yield from programs_in(Path(name))
    if huge and HUGE.name not in chosen:
        yield HUGE
