"""The child process of `shardy_py.oracle.reference`: runs C++ passes and answers in JSON.

It imports little but jaxlib, so that it starts fast and an abort of the C++ code costs little.
"""

from __future__ import annotations

import json
from typing import Any

from shardy_py.support.processes.serve import ShowStep, serve


def make_context() -> Any:
    """Return an MLIR context with every dialect that jaxlib has; unregistered ones are allowed."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _mlirHlo
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, chlo, stablehlo):
        dialect.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)
    return context


def run_pipeline(text: str, pipeline: str) -> dict[str, str]:
    """Parse a module, run a pass pipeline over it ("" for none) and print it."""
    from jaxlib.mlir import ir, passmanager

    stage = "parse"
    try:
        with make_context():
            module = ir.Module.parse(text)
            if pipeline:
                stage = "pipeline"
                manager = passmanager.PassManager.parse(pipeline)
                stage = "run"
                manager.run(module.operation)
            stage = "print"
            return {"kind": "ok", "stage": "", "text": module.operation.get_asm()}
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        return {"kind": "error", "stage": stage, "text": str(error)}


def main() -> None:
    """Answer requests; the first one is empty, and answered when the dialects are loaded."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    if not request:
        make_context()
        return b""
    message = json.loads(request)
    return json.dumps(run_pipeline(message["text"], message["pipeline"])).encode()
