"""From whatever a caller gives to a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve

from shardy_py.errors import ShardyError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph import Op, Program
from shardy_py.plugins import Registry

_UNNAMED = "-:"


def source_name(module: Any) -> str:
    """Return the file a module is read from, or ""."""
    return str(module) if isinstance(module, Path) else ""


def read_program(module: Any) -> Program:
    """Return the op graph of a module in any form; its locations name the file it was read from.

    Raises:
        ShardyError: the input is not valid.
    """
    frontend = frontend_of(module)
    native = frontend.to_module(module)
    name = source_name(module)
    if not name:
        return frontend.import_module(native)
    try:
        program: Program = frontend.import_module(native)
    except ShardyError as error:
        raise type(error)(*(evolve(item, location=_named(item.location, name)) for item in error.diagnostics)) from None
    program.locate = _Locate(program, name)
    return program


def complete_registry(program: Program, registry: Registry) -> Registry:
    """Return a registry that also knows what the module itself says about its ops, where its kind of input can."""
    extend = getattr(frontend_of(program), "extend_registry", None)
    return registry if extend is None else extend(program, registry)


class _Locate:
    """Puts the name of the file in the place of MLIR's name for text."""

    def __init__(self, program: Program, name: str) -> None:
        self._locate = program.locate
        self._name = name

    def __call__(self, op: Op) -> str:
        return _named(self._locate(op), self._name)


def _named(location: str, name: str) -> str:
    return f"{name}:{location.removeprefix(_UNNAMED)}" if location.startswith(_UNNAMED) else location
