"""The local program of a propagated module, in words of the caller where it cannot be made."""

from __future__ import annotations

from typing import Any

from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, ParseError, UnsupportedError
from shardy_py.jax.local import LocalProgram, make_local_program
from shardy_py.plugins import Registry


def local_form(module: Any, registry: Registry, options: LocalOptions, *, name: str, is_explicit: bool) -> LocalProgram:
    """Return the program that each device runs.

    Args:
        module: The module of MLIR, or its text.
        registry: The definitions of ops.
        options: The options.
        name: What locations call a source without a name of its own.
        is_explicit: Whether all communication of the module is explicit.

    Raises:
        UnsupportedError: MLIR does not know a dialect of the program.
        ShardyError: an op has no local form, or a sharded dimension is dynamic.
    """
    try:
        return make_local_program(module, registry=registry, options=options, name=name, is_explicit=is_explicit)
    except ParseError as error:
        message = f"local programs are written by MLIR, which does not read this one: {error.diagnostics[0].message}"
        hint = "run it on virtual devices with shardy_py.testing.run_sharded"
        raise UnsupportedError(Diagnostic("not-readable-by-mlir", message, hint=hint)) from None
