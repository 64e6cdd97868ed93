"""Choice of the programs to measure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.programs import PROGRAMS, Program
from benchmarks.programs.files import programs_in

ALL = "all"
_MADE = {program.name: program for program in PROGRAMS}


def choose_programs(names: Iterable[str]) -> Iterator[Program]:
    """Yield programs by name, in the order of the names.

    Args:
        names: Of programs made here, `ALL` for all of these, or paths of files and folders; none for all as well.

    Raises:
        OSError: there is no such program, nor a file or a folder.
        ValueError: a file is of another kind.
    """
    for name in list(names) or [ALL]:
        if name == ALL:
            yield from PROGRAMS
        elif name in _MADE:
            yield _MADE[name]
        else:
            yield from programs_in(Path(name))
