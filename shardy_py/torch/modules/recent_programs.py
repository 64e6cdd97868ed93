"""Programs that are kept for as long as they are among those that were used last."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from attrs import field

from shardy_py.errors import Diagnostic
from shardy_py.values import define

_Key = TypeVar("_Key", bound=Hashable)
_Program = TypeVar("_Program")

KEPT = 64
"""The number of programs of one module that are kept; the longest unused one is dropped, and made again when needed."""
MANY = 8
"""The number of programs of one module at which a warning names the cause, as the recompile limit of `torch.compile`"""


def recent(programs: dict[_Key, _Program], key: _Key) -> _Program | None:
    """Return a program, or None if there is none; with many, it is the one that was used last from then on.

    Args:
        programs: The programs; with many, the longest unused one first.
        key: What the program depends on.
    """
    import torch

    program = programs.get(key)
    # A compiler takes the programs that there are as constants.
    if program is not None and len(programs) > KEPT // 2 and not torch.compiler.is_compiling():
        programs[key] = programs.pop(key)
    return program


def keep(programs: dict[_Key, _Program], key: _Key, program: _Program) -> None:
    """Keep a program, and drop the longest unused one if there are too many.

    Args:
        programs: The programs.
        key: What the program depends on.
        program: The program.
    """
    programs[key] = program
    while len(programs) > KEPT:
        del programs[next(iter(programs))]


@define(eq=False, slots=False)
class RemakeCounter:
    """Counter of the programs of a module, which warns of many.

    Attributes:
        difference: Returns in words what the second of two keys has other than the first.
        warn: Gets the warning.
    """

    difference: Callable[[Any, Any], str]
    warn: Callable[[Diagnostic], None]
    _count: int = field(default=0, init=False)
    _last: Any = field(default=None, init=False)

    def note(self, key: Any) -> None:
        """Count a program.

        Args:
            key: What it depends on.
        """
        self._count += 1
        if self._count == MANY:
            message = f"{MANY} programs were made for one module, and each takes its time: in this call"
            message += f" {self.difference(self._last, key)}"
            hint = "let it be the same in each call, or use dynamic_shapes for shapes that vary;"
            hint += f" the {KEPT} programs that were used last are kept"
            self.warn(Diagnostic("many-programs", message, hint=hint))
        self._last = key
