"""The child process of `shardy_py.oracle.reference`: runs C++ passes and answers over pipes.

It imports nothing but jaxlib, so that it starts fast and an abort of the C++ code costs little. Messages are JSON with
a four byte little-endian length before them.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO


def make_context() -> Any:
    """Return an MLIR context with every dialect that jaxlib has; unregistered ones are allowed."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, chlo, stablehlo):
        dialect.register_dialect(context)
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


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the pipe closes."""
    make_context()
    send(answers, {"kind": "ready"})
    while len(head := requests.read(4)) == 4:
        request = json.loads(requests.read(struct.unpack("<I", head)[0]))
        send(answers, run_pipeline(request["text"], request["pipeline"]))


def send(pipe: BinaryIO, message: dict[str, str]) -> None:
    """Write one message."""
    data = json.dumps(message).encode("ascii")
    pipe.write(struct.pack("<I", len(data)) + data)
    pipe.flush()


def main() -> None:
    """Keep the answers on a private descriptor, since C++ code may print on standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(os.fdopen(os.dup(0), "rb"), answers)


if __name__ == "__main__":
    main()
