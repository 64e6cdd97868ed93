"""MLIR contexts with every dialect a tensor program may use, and MLIR's errors as those of this package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from threading import Lock

from attrs import evolve
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _sdyMpmd, _stablehlo

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.ir.graph.op_names import MESH
from shardy_py.support.texts import escape_controls

_REGISTRATION = Lock()
DIALECTS = frozenset(
    (
        *("arith", "builtin", "cf", "chlo", "func", "gpu", "llvm", "math", "memref", "mhlo", "mpmd", "nvgpu", "nvvm"),
        *("scf", "sdy", "shape", "sparse_tensor", "stablehlo", "tensor", "vector", "vhlo"),
    )
)
"""The dialects of jaxlib, whose ops MLIR reads in their own formats."""


def make_context() -> ir.Context:
    """Return a context with the dialects of jaxlib, which accepts unregistered ops in generic form, too.

    A dialect is loaded when the parser meets it, which takes a tenth of the time of loading all of them. Those whose
    ops passes make in programs that may have none of them are loaded at once.
    """
    context = ir.Context()
    # Verifying functions in threads deadlocks: the first diagnostic waits for the lock that the caller holds.
    context.enable_multithreading(False)
    # The bindings also register passes for the whole process, which threads may not do at the same time.
    with _REGISTRATION:
        dialects = _dialects()
    context.append_dialect_registry(dialects)
    for library in (_sdy, _sdyMpmd, _stablehlo, _chlo):
        library.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    return context


@cache
def _dialects() -> ir.DialectRegistry:
    """Return the dialects of jaxlib, none of them loaded."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def ensure_shardy(context: ir.Context) -> None:
    """Load the ``sdy`` dialect into a context somebody else made, unless it is there."""
    if not context.is_registered_operation(MESH):
        _sdy.register_dialect(context)


_LOCATION = r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)'
_SCOPE = r'loc\((?:fused(?:<[^>]*>)?\[)?"((?:[^"\\]|\\.)*)"(?!:\d)'
_SUBJECT = r"^'([\w$.-]+)' op "
# What MLIR adds to errors beside the message: the dump of the op would bury it, the version of bytecode is no fix.
_NOISE = ("see current operation", "in bytecode version")


def location_text(native: object, name: str = "-") -> str:
    """Return a native location as ``file:line:column``, without what a terminal obeys; "" where it has none.

    Args:
        native: The location.
        name: What to call a source that has no name of its own.
    """
    match = re.search(_LOCATION, str(native))
    if match is None:
        return ""
    file, line, column = match.groups()
    return escape_controls(f"{name if file == '-' else file}:{line}:{column}")


def scope_text(native: object) -> str:
    """Return the name of a native location, without the names of the frames of a call stack; "" where it has none.

    Args:
        native: The location.
    """
    match = re.match(_SCOPE, str(native))
    return "" if match is None else match[1]


def diagnostics_of(error: ir.MLIRError, code: str, name: str = "-") -> Iterator[Diagnostic]:
    """Yield the errors MLIR reported, with locations in our notation; one without a file is called by its name."""
    for item in error.error_diagnostics:
        location = location_text(item.location, name) or scope_text(item.location)
        notes = [note.message for note in item.notes if not note.message.startswith(_NOISE)]
        subject = re.match(_SUBJECT, item.message)
        yield Diagnostic(
            code,
            item.message[subject.end() :] if subject else item.message,
            location=location,
            op=subject.group(1) if subject else "",
            hint="; ".join(notes),
        )


def convert_error(
    error: ir.MLIRError, class_: type[ShardyError], code: str, name: str = "-", *, hint: str = ""
) -> ShardyError:
    """Return MLIR's error as one of ours, with a hint in the place of MLIR's notes if there is one."""
    diagnostics = list(diagnostics_of(error, code, name)) or [Diagnostic(code, str(error), location=name)]
    return class_(*(evolve(item, hint=hint or item.hint) for item in diagnostics))
