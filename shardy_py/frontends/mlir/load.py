"""Sources to verified native modules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError, VerificationError
from shardy_py.extensions import function
from shardy_py.frontends.mlir.context import make_context
from shardy_py.frontends.mlir.isolated_parse import ParsedModule, parse_isolated
from shardy_py.frontends.mlir.native_errors import convert_error
from shardy_py.frontends.mlir.portable_artifacts import (
    BYTECODE,
    is_portable_artifact,
    is_serialized_export,
    module_of_bytecode,
)
from shardy_py.frontends.mlir.unicode import has_bad_strings, refuse_bad_names
from shardy_py.frontends.sources import source_bytes
from shardy_py.frontends.text_limits import check_text


def load(source: Any) -> ir.Module:
    """Return the module of a text, bytecode, path, module or JAX stage; see `to_module`."""
    if isinstance(source, ir.Module):
        verify(source)
        return source
    if isinstance(source, (str, bytes, bytearray, Path)):
        return parse(bytes(source) if isinstance(source, bytearray) else source, "-")
    if isinstance(source, ParsedModule):
        return parse(source.content, source.name)
    if function("is_stage")(source):
        return function("module_of_stage")(source)
    raise UnsupportedError(
        Diagnostic(
            "unknown-input",
            f"a {type(source).__name__} is no module",
            hint="give MLIR text, bytecode, a path, a jaxlib ir.Module, or what jax.jit(f).lower(...) returns",
        )
    )


def parse(source: str | bytes | Path, name: str) -> ir.Module:
    """Return the module in a text, in bytecode or in a file; see `parse_module`."""
    data, name = source_bytes(source, name)
    if data.startswith(BYTECODE) and has_bad_strings(data):
        # As text it shows which of its strings are names.
        data = parse_isolated(data, name=name).content
    return parse_here(data, name)


def parse_here(data: bytes, name: str) -> ir.Module:
    """Return the module in text or in bytecode, parsed in this process whatever is in it."""
    if is_portable_artifact(data):
        return module_of_bytecode(data, name)
    if is_serialized_export(data):
        return function("module_of_serialized")(data, name)
    if not data.startswith(BYTECODE):
        check_text(data, name)
        refuse_bad_names(data, name)
    try:
        return ir.Module.parse(data, make_context())
    except ir.MLIRError as error:
        raise convert_error(error, ParseError, "malformed-module", name, hint=_hint(data, str(error))) from None


def _hint(data: bytes, message: str) -> str:
    """Return a hint for a text that is no module."""
    call = re.search(r"'([^']+)' does not reference a valid function", message)
    if call is not None and re.search(rb"func\.func[^@]*@\"?%s\b" % re.escape(call[1].encode()), data):
        return "the region of an op that MLIR does not know can call no function outside of it; write its ops there"
    is_name = data.endswith((b".mlir", b".mlirbc", b".bc")) and b"\n" not in data
    return "this is read as the text of a module; give the name of a file as a pathlib.Path" if is_name else ""


def verify(module: ir.Module, name: str = "-") -> None:
    """Run MLIR's verifiers; see `verify_module`."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise convert_error(error, VerificationError, "invalid-module", name) from None
