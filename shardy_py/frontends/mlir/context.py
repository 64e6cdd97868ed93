"""MLIR contexts with every dialect a tensor program may use; needs jaxlib only."""

from __future__ import annotations

from functools import cache
from threading import Lock

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

from shardy_py.ir.graph.op_names import MESH

_REGISTRATION = Lock()


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
    for library in (_sdy, _stablehlo, _chlo):
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
