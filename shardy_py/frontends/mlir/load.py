"""Load sources as verified native modules.

Strings of a module may hold bytes that are not UTF-8, for example what a custom call passes on. MLIR takes them, but
its Python bindings end the process on them as names, so such names are refused here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, ParseError, UnsupportedError, VerificationError
from shardy_py.extensions import function
from shardy_py.frontends.mlir.bytecode import read_number
from shardy_py.frontends.mlir.context import DIALECTS, convert_error, make_context
from shardy_py.frontends.mlir.foreign_ops import has_foreign_properties, to_generic
from shardy_py.frontends.mlir.isolated_parse import ParsedModule, parse_isolated
from shardy_py.frontends.mlir.newer_text import to_older
from shardy_py.frontends.mlir.portable_artifacts import (
    BYTECODE,
    is_portable_artifact,
    is_serialized_export,
    module_of_bytecode,
)
from shardy_py.frontends.mlir.shard_text import from_shard, has_shard_ops
from shardy_py.frontends.sources import check_text, source_bytes
from shardy_py.sharding.lexer import unescape
from shardy_py.support.late_patterns import late_pattern

_MAY_BE_NEWER = late_pattern(rb"unreduced\s*=\s*[sm]|sdy\.(?:all_reduce|reduce_scatter)\s+[sm]")
_FOREIGN_OP = "not found for custom op"
_HIGH_ESCAPE = late_pattern(rb"\\[89A-Fa-f][0-9A-Fa-f]")
_STRING = rb'"((?:[^"\\\n]++|\\.)*+)"|"|//[^\n]*+'
_BEFORE_VALUE = rb"=\s*\Z|loc\(\s*\Z"
_NAMING = rb"(?:sym_name|callee|mesh_name)\s*=\s*\Z"
_AFTER_OP_NAME = late_pattern(rb"\s*+\(")
_CONTEXT = 40
_STRING_SECTION = 0
_ALIGNED = 0x80
_HINT = "MLIR's Python bindings cannot handle it; only the values of attributes may have other bytes"


def refuse_bad_names(data: bytes, name: str) -> None:
    """Check that the names in the text of a module are UTF-8.

    Raises:
        ParseError: one is not; the error has its place.
    """
    if _HIGH_ESCAPE.search(data) is None and _is_unicode(data):
        return
    for match in re.finditer(_STRING, data):
        body = match[1]
        if body is None or _is_unicode(body, escaped=True):
            continue
        before = data[max(0, match.start() - _CONTEXT) : match.start()]
        is_op = _AFTER_OP_NAME.match(data, match.end()) and not before.rstrip().endswith(b"loc(")
        if re.search(_BEFORE_VALUE, before) and not re.search(_NAMING, before) and not is_op:
            continue
        line = data.count(b"\n", 0, match.start()) + 1
        column = match.start() - data.rfind(b"\n", 0, match.start())
        message = "a name or string is not valid UTF-8"
        raise ParseError(Diagnostic("invalid-unicode", message, f"{name}:{line}:{column}", hint=_HINT))


def _is_unicode(data: bytes, *, escaped: bool = False) -> bool:
    if not escaped and data.isascii():
        return True
    try:
        text = data.decode("utf-8", "surrogateescape")
        value = unescape(text) if escaped else text
        # What has unknown escapes is refused by MLIR.
        (value or "").encode()
    except UnicodeError:
        return False
    return True


def has_bad_strings(bytecode: bytes) -> bool:
    """Return whether a string in bytecode is no UTF-8; False for what is no bytecode, which MLIR refuses."""
    try:
        _, at = read_number(bytecode, 4)
        at = bytecode.index(0, at) + 1
        while True:
            head = bytecode[at]
            size, begin = read_number(bytecode, at + 1)
            if head & _ALIGNED:
                alignment, begin = read_number(bytecode, begin)
                begin += -begin % alignment
            if head & ~_ALIGNED == _STRING_SECTION:
                return not _is_unicode(_strings(bytecode[begin : begin + size]))
            at = begin + size
    except (IndexError, ValueError, ZeroDivisionError, OverflowError, MemoryError):
        return False


def _strings(section: bytes) -> bytes:
    """Return all strings of the section of strings, each with a zero behind it."""
    count, at = read_number(section, 0)
    for _ in range(min(count, len(section))):
        _, at = read_number(section, at)
    return section[at:]


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
            f"an object of type {type(source).__name__} is not a module",
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
        data = _older_text(_without_shard_ops(data, name))
        if has_foreign_properties(data, DIALECTS):
            data = _generic_text(data)
    try:
        return ir.Module.parse(data, make_context())
    except ir.MLIRError as error:
        first = error
    if _FOREIGN_OP in str(first):
        try:
            return ir.Module.parse(_generic_text(data), make_context())
        except ir.MLIRError as error:
            # The op that it names is one that is not in the usual format.
            first = error
    raise convert_error(first, ParseError, "malformed-module", name, hint=_hint(data, str(first)))


def _without_shard_ops(data: bytes, name: str) -> bytes:
    """Return text with Shardy's ops in the places of those of MLIR's dialect ``shard``."""
    if not has_shard_ops(data):
        return data
    return from_shard(data.decode(errors="surrogateescape"), name).encode(errors="surrogateescape")


def _generic_text(data: bytes) -> bytes:
    """Return text in which ops that MLIR does not know are in generic form."""
    return to_generic(data.decode(errors="surrogateescape"), DIALECTS).encode(errors="surrogateescape")


def _older_text(data: bytes) -> bytes:
    """Return text as jaxlib reads it; most has nothing newer, which is told without looking at strings."""
    if _MAY_BE_NEWER.search(data) is None:
        return data
    return to_older(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def _hint(data: bytes, message: str) -> str:
    """Return a hint for a text that is not a module."""
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
