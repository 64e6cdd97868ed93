"""Programs of JAX in the form in which `jax.jit` propagates them: what XLA makes of a module before Shardy runs.

The module goes to HLO, calls are inlined there, it comes back to StableHLO, and is imported as XLA imports it. Each of
these steps decides about shardings: it changes ops and their order. Known with jax and jaxlib 0.10.2 on the CPU, where
XLA simplifies nothing before it propagates; other backends may simplify first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.support.late_patterns import late_pattern

__all__ = [
    "ConversionError",
    "import_like_jit",
    "is_jax_program",
    "is_written_by_jax",
    "jaxlib_version",
    "read_like_jit",
]


class ConversionError(Exception):
    """A program that cannot be brought into the form that `jax.jit` propagates; the text says why."""


def is_jax_program(source: Any, frontend: Frontend) -> bool:
    """Return whether a source is a program of JAX: a stage, an export or its bytes, or HLO text; no MLIR module."""
    if frontend.name in ("jax", "hlo"):
        return True
    if frontend.name != "mlir":
        return False
    from shardy_py.frontends.mlir.isolated_parse import ParsedModule
    from shardy_py.frontends.mlir.portable_artifacts import is_serialized_export

    if isinstance(source, ParsedModule):
        return source.is_export
    if isinstance(source, Path):
        try:
            source = source.read_bytes()
        except (OSError, ValueError):
            return False
    return isinstance(source, (bytes, bytearray)) and is_serialized_export(bytes(source))


_JAX_MODULE = late_pattern(r"module @p?jit_[^\n]*\bmhlo\.num_partitions\b")
_HEAD_BYTES = 1 << 16
"""The first bytes of a file, in which the line of its module is; locations may stand before it."""


def is_written_by_jax(source: Any) -> bool:
    """Return whether a source is a module in MLIR that JAX made of a jitted function, by its name and attributes."""
    if isinstance(source, str):
        return _JAX_MODULE.search(source[:_HEAD_BYTES]) is not None
    if isinstance(source, (bytes, bytearray)):
        return is_written_by_jax(bytes(source[:_HEAD_BYTES]).decode(errors="replace"))
    if isinstance(source, Path):
        try:
            with source.open("rb") as file:
                return is_written_by_jax(file.read(_HEAD_BYTES))
        except (OSError, ValueError):
            return False
    return False


def read_like_jit(
    source: Any, frontend: Frontend, semantics: OpSemantics
) -> tuple[Program | None, tuple[Diagnostic, ...]]:
    """Return a program as `jax.jit` propagates it; or None, and a warning that says why there is no such form."""
    try:
        return import_like_jit(source, frontend, semantics), ()
    except ConversionError as error:
        message = f"the program is propagated as it is, and jax.jit may decide otherwise: {error}"
        return None, (
            Diagnostic(
                "not-like-jit", message, hint="give like='passes' (--like passes) to have it so without a warning"
            ),
        )


def import_like_jit(source: Any, frontend: Frontend, semantics: OpSemantics) -> Program:
    """Return the op graph of a program as Shardy gets it inside of `jax.jit`.

    Args:
        source: The program.
        frontend: The frontend that accepts it.
        semantics: The definitions of ops.

    Raises:
        ConversionError: it has no such form, or XLA cannot make it; the text says why.
        ShardyError: the program is not valid.
    """
    from shardy_py.jax.like_jit.read import read

    return read(source, frontend, semantics)


def jaxlib_version() -> str:
    """Return the version of the jaxlib whose XLA converts programs."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jaxlib")
    except PackageNotFoundError:
        return ""
