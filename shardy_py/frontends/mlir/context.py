"""MLIR contexts with every dialect a tensor program may use; needs jaxlib only."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo


def make_context() -> ir.Context:
    """Return a context with the dialects of jaxlib, which accepts unregistered ops in generic form, too."""
    context = ir.Context()
    # Verifying functions in threads deadlocks: the first diagnostic waits for the lock that the caller holds.
    context.enable_multithreading(False)
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for library in (_sdy, _stablehlo, _chlo):
        library.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def ensure_shardy(context: ir.Context) -> None:
    """Load the ``sdy`` dialect into a context somebody else made."""
    _sdy.register_dialect(context)
