"""MLIR's own generic passes, run on the native module."""

from __future__ import annotations

from jaxlib.mlir import ir, passmanager

from shardy_py.errors import Diagnostic, OptionError, VerificationError
from shardy_py.frontends.mlir.context import convert_error
from shardy_py.frontends.mlir.importer import import_native
from shardy_py.frontends.mlir.native_ops import NativeProgram
from shardy_py.frontends.mlir.writer import write
from shardy_py.ir.graph.program import Program

GENERIC_PASSES = ("canonicalize", "cse", "symbol-dce")


def run(program: Program, name: str) -> None:
    """Run one pass; see `run_native_pass`."""
    if name not in GENERIC_PASSES:
        known = ", ".join(GENERIC_PASSES)
        raise OptionError(Diagnostic("unknown-pass", f"{name} is not a generic pass", hint=f"known: {known}"))
    module = write(program)
    origin: NativeProgram = program.origin
    # The handles must be gone before the pass frees what they stand for.
    program.body.handle = None
    try:
        with origin.module.context:
            passmanager.PassManager.parse(f"builtin.module({name})").run(module.operation)
    except ir.MLIRError as error:
        raise convert_error(error, VerificationError, "pass-failed", origin.name) from None
    import_native(module, name=origin.name, into=program)
