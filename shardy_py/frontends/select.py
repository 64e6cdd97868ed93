"""Choosing the frontend for a program."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.extensions import FRONTENDS, load
from shardy_py.frontends.sources import check_exists, is_native_module
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES, Frontend
from shardy_py.plugins import Registry

_BUNDLED = {
    "program": "shardy_py.frontends.op_graphs:PROGRAM",
    "xdsl": "shardy_py.frontends.xdsl:XDSL",
    "mlir": "shardy_py.frontends.mlir:MLIR",
    **FRONTENDS,
}
WRITTEN_AS_JAX = frozenset(("mlir", "jit", "jax", "hlo", "xdsl", "program", "torch"))
"""The frontends for whose programs shardings of arguments are written as JAX writes them."""


def find_frontend(source: object, registry: Registry) -> Frontend:
    """Return the frontend that accepts a source.

    Those of plugins are asked first, all of them; then the bundled ones in their order, of which MLIR is the last.

    Raises:
        OptionError: several plugins accept the source.
        UnsupportedError: none accepts it.
        ParseError: a plugin accepts the path of a file that is not there.
    """
    accepting = [item for item in registry.frontends.values() if item.accepts(source)]
    if len(accepting) > 1:
        names = " and ".join(repr(item.name) for item in accepting)
        message = f"a {type(source).__name__} is accepted by the frontends {names}"
        raise OptionError(Diagnostic("ambiguous-input", message, hint="block one of their plugins by its name"))
    if accepting:
        # Those of this package refuse such a file themselves.
        if isinstance(source, Path):
            check_exists(source)
        return accepting[0]
    bundled = ("mlir",) if is_native_module(source) else BUNDLED_NAMES
    frontend = next((item for item in map(bundled_frontend, bundled) if item.accepts(source)), None)
    if frontend is None:
        raise UnsupportedError(
            Diagnostic(
                "unknown-input",
                f"an object of type {type(source).__name__} is not a module",
                hint="give MLIR text, bytecode, a path, a jaxlib ir.Module, what jax.jit(f).lower(...) returns, an xDSL"
                " ModuleOp, a shardy_py.Program, or install the plugin whose frontend reads it",
            )
        )
    return frontend


def named_frontend(name: str, registry: Registry) -> Frontend:
    """Return the frontend of a name.

    Raises:
        OptionError: there is none.
    """
    if name in BUNDLED_NAMES:
        return bundled_frontend(name)
    if name not in registry.frontends:
        known = ", ".join((*registry.frontends, *BUNDLED_NAMES))
        raise OptionError(Diagnostic("unknown-frontend", f"there is no frontend {name!r}", hint=f"there are {known}"))
    return registry.frontends[name]


def frontend_of(program: Program) -> Frontend:
    """Return the frontend that a program came through; one that was built in Python has that of op graphs."""
    frontend: Frontend = program.frontend or bundled_frontend("program")
    return frontend


@cache
def bundled_frontend(name: str) -> Frontend:
    """Return a frontend of this package, imported when it is asked for first."""
    frontend: Frontend = load(_BUNDLED[name])
    return frontend
