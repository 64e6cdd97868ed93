"""The local program of a propagated program, in words of the caller where it cannot be made."""

from __future__ import annotations

from typing import Any

from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES
from shardy_py.jax.local import LocalProgram, make_local_program
from shardy_py.jax.local.make import make_local_graph
from shardy_py.plugins import Registry


def local_form(
    program: Program, module: Any, registry: Registry, options: LocalOptions, *, name: str, is_explicit: bool
) -> LocalProgram:
    """Return the program that each device runs.

    MLIR makes it where it reads the program. Where a plugin's frontend writes local programs itself, or its text is not
    MLIR, it is made in the op graph.

    Args:
        program: The propagated program.
        module: Its native module.
        registry: The definitions of ops.
        options: The options.
        name: What locations call a source without a name of its own.
        is_explicit: Whether all communication of the module is explicit.

    Raises:
        UnsupportedError: MLIR does not know a dialect of the program.
        ShardyError: an op has no local form, or a sharded dimension is dynamic.
    """
    frontend = frontend_of(program)
    if frontend.writes_local:
        return make_local_graph(program, registry=registry, options=options, is_explicit=is_explicit)
    try:
        return make_local_program(
            frontend.to_mlir(module), registry=registry, options=options, name=name, is_explicit=is_explicit
        )
    except ParseError as error:
        if frontend.name not in BUNDLED_NAMES:
            return make_local_graph(program, registry=registry, options=options, is_explicit=is_explicit)
        message = f"local programs are written by MLIR, which does not read this one: {error.diagnostics[0].message}"
        hint = "run it on virtual devices with shardy_py.testing.run_sharded"
        raise UnsupportedError(Diagnostic("not-readable-by-mlir", message, hint=hint)) from None
