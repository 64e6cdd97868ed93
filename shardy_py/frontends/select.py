"""Which frontend a module or a program belongs to, found out without importing any."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from shardy_py.ir.graph import Program

SUFFIX = ".xdsl"
"""The suffix of the files that xDSL reads; all others are MLIR's."""


def frontend_of(source: Any) -> ModuleType:
    """Return the frontend for a module in any form, or the one a program came through.

    A program that no frontend read counts as MLIR's.
    """
    given = source.origin if isinstance(source, Program) else source
    is_xdsl = given.suffix == SUFFIX if isinstance(given, Path) else _is_xdsl(type(given))
    return import_module(f"shardy_py.frontends.{'xdsl' if is_xdsl else 'mlir'}")


def _is_xdsl(type_: type) -> bool:
    """Return whether a class is derived from one of xDSL, or is the origin of a program that came from it."""
    names = [class_.__module__ for class_ in type_.__mro__]
    return any(name.startswith(("xdsl.", "shardy_py.frontends.xdsl.")) for name in names)
