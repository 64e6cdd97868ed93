"""From whatever a caller gives to a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shardy_py.ir.graph import Op, Program

_UNNAMED = "-:"


def source_name(module: Any) -> str:
    """Return the file a module is read from, or ""."""
    return str(module) if isinstance(module, Path) else ""


def read_program(module: Any) -> Program:
    """Return the op graph of a module in any form; its locations name the file it was read from.

    Raises:
        ShardyError: the input is not valid.
    """
    from shardy_py.frontends.mlir import import_module, to_module

    program = import_module(to_module(module))
    name = source_name(module)
    if name:
        program.locate = _Locate(program, name)
    return program


class _Locate:
    """Puts the name of the file in the place of MLIR's name for text."""

    def __init__(self, program: Program, name: str) -> None:
        self._locate = program.locate
        self._name = name

    def __call__(self, op: Op) -> str:
        location = self._locate(op)
        return f"{self._name}:{location.removeprefix(_UNNAMED)}" if location.startswith(_UNNAMED) else location
