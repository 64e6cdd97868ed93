"""Propagated modules for compilers that do not know Shardy."""

from __future__ import annotations

from typing import Any
from warnings import warn

from shardy_py.errors import Diagnostic
from shardy_py.plugins import Registry


def gspmd_module(module: Any, registry: Registry, warnings: list[Diagnostic] | None) -> Any:
    """Return a module in the form for compilers that know GSPMD and not Shardy."""
    from shardy_py.jax.gspmd.exporter import for_gspmd

    program, diagnostics = for_gspmd(module, semantics=registry)
    if warnings is not None:
        warnings.extend(diagnostics)
    else:
        for item in diagnostics:
            warn(item.show("warning"), stacklevel=3)
    return program.origin.module
