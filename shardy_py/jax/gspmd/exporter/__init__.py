"""The form for compilers that do not know Shardy: shardings of GSPMD, as JAX writes them without Shardy."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from shardy_py.errors import Diagnostic
from shardy_py.frontends.mlir import import_module, to_module, verify_module, write_back
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.jax.gspmd.exporter.annotate import annotate
from shardy_py.jax.gspmd.exporter.contexts import settle_contexts
from shardy_py.jax.gspmd.exporter.losses import find_losses
from shardy_py.jax.gspmd.exporter.lower import lower_shardy_ops
from shardy_py.jax.gspmd.exporter.texts import Texts
from shardy_py.transforms.exported_ops import count_from_the_front
from shardy_py.transforms.finish.drop_meshes import inline_mesh_references

__all__ = ["for_gspmd"]


def for_gspmd(module: Any, *, semantics: OpSemantics) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Return a propagated module with shardings of GSPMD in the place of all that is Shardy's.

    Arguments, results and ops have an attribute ``mhlo.sharding``; a tensor without a sharding is said to be
    replicated. What changes shardings becomes a custom call ``Sharding``, a manual computation becomes custom calls
    ``SPMDFullToShardShape`` and ``SPMDShardToFullShape`` around its ops.

    Args:
        module: What `to_module` takes; it stays as it is.
        semantics: What the dialects say about the ops (a `Registry`).

    Returns:
        A program whose `origin` holds the module, written back; and a warning if GSPMD has no words for something.

    Raises:
        UnsupportedError: the module has an op of Shardy that does not occur in a propagated module.
        VerificationError: a sharding is not valid.
    """
    program = import_module(_copy(to_module(module)))
    load_shardings(program, semantics)
    warnings = find_losses(program)
    texts = Texts(program, semantics)
    settle_contexts(program, texts)
    annotate(program, semantics, texts)
    inline_mesh_references(program, semantics)
    lower_shardy_ops(program, texts)
    count_from_the_front(program)
    verify_module(write_back(program))
    return program, warnings


def _copy(module: Any) -> Any:
    buffer = BytesIO()
    module.operation.write_bytecode(buffer)
    return type(module).parse(buffer.getvalue(), module.context)
