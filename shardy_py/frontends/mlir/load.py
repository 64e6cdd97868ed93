"""Sources to verified native modules, and MLIR's errors to ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve
from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, ParseError, ShardyError, UnsupportedError, VerificationError
from shardy_py.frontends.jax_modules import (
    BYTECODE,
    is_portable_artifact,
    is_serialized_export,
    is_stage,
    module_of_bytecode,
    module_of_serialized,
    module_of_stage,
)
from shardy_py.frontends.mlir.apart import ParsedModule, parse_apart
from shardy_py.frontends.mlir.context import make_context
from shardy_py.frontends.mlir.unicode import has_bad_strings, refuse_bad_names

_MAX_BRACKETS = 512
"""How deeply brackets may nest: MLIR's parser is recursive and would overflow its stack, which ends the process."""
_TOKEN = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+|->|[][(){}<>]')
_MAX_DIGITS = 2000
_MANY_DIGITS = re.compile(rb"(?<![0-9])[0-9]{%d}" % _MAX_DIGITS)
_TOKEN_OR_NUMBER = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+|[0-9]{%d}' % _MAX_DIGITS)
_OPENING, _CLOSING = frozenset((b"(", b"[", b"{", b"<")), frozenset((b")", b"]", b"}", b">"))
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}<>"))
_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_SUBJECT = re.compile(r"^'([\w$.-]+)' op ")


def location_text(native: object, name: str = "-") -> str:
    """Return a native location as ``file:line:column``; "" where it has none.

    Args:
        native: The location.
        name: What to call a source that has no name of its own.
    """
    match = _LOCATION.search(str(native))
    if match is None:
        return ""
    file, line, column = match.groups()
    return f"{name if file == '-' else file}:{line}:{column}"


def diagnostics_of(error: ir.MLIRError, code: str, name: str = "-") -> Iterator[Diagnostic]:
    """Yield the errors MLIR reported, with locations in our notation."""
    for item in error.error_diagnostics:
        location = location_text(item.location, name)
        # The dump of the op that MLIR adds to verifier errors would bury the message.
        notes = [note.message for note in item.notes if not note.message.startswith("see current operation")]
        subject = _SUBJECT.match(item.message)
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
    found = list(diagnostics_of(error, code, name)) or [Diagnostic(code, str(error), location=name)]
    return class_(*(evolve(item, hint=hint or item.hint) for item in found))


def load(source: Any) -> ir.Module:
    """Return the module of a text, bytecode, path, module or JAX stage; see `to_module`."""
    if isinstance(source, ir.Module):
        verify(source)
        return source
    if isinstance(source, (str, bytes, bytearray, Path)):
        return parse(bytes(source) if isinstance(source, bytearray) else source, "-")
    if isinstance(source, ParsedModule):
        return parse(source.content, source.name)
    if is_stage(source):
        return module_of_stage(source)
    raise UnsupportedError(
        Diagnostic(
            "unknown-input",
            f"a {type(source).__name__} is no module",
            hint="give MLIR text, bytecode, a path, a jaxlib ir.Module, or what jax.jit(f).lower(...) returns",
        )
    )


def content(source: str | bytes | Path, name: str) -> tuple[bytes, str]:
    """Return the bytes of a source and what locations call it.

    Raises:
        ParseError: it cannot be read, or is text with characters that are none.
    """
    if isinstance(source, Path):
        return _read(source), str(source)
    try:
        return source.encode() if isinstance(source, str) else source, name
    except UnicodeEncodeError as error:
        raise ParseError(Diagnostic("malformed-module", f"the text is no valid Unicode: {error}", name)) from None


def parse(source: str | bytes | Path, name: str) -> ir.Module:
    """Return the module in a text, in bytecode or in a file; see `parse_module`."""
    data, name = content(source, name)
    if data.startswith(BYTECODE) and has_bad_strings(data):
        # As text it shows which of its strings are names.
        data = parse_apart(data, name=name).content
    return parse_here(data, name)


def parse_here(data: bytes, name: str) -> ir.Module:
    """Return the module in text or in bytecode, parsed in this process whatever is in it."""
    if is_portable_artifact(data):
        return module_of_bytecode(data, name)
    if is_serialized_export(data):
        return module_of_serialized(data, name)
    if not data.startswith(BYTECODE):
        _check_text(data, name)
        refuse_bad_names(data, name)
    try:
        return ir.Module.parse(data, make_context())
    except ir.MLIRError as error:
        raise convert_error(error, ParseError, "malformed-module", name, hint=_hint(data)) from None


def _hint(data: bytes) -> str:
    """Return what may have been meant by a text that is no module."""
    is_name = data.endswith((b".mlir", b".mlirbc", b".bc")) and b"\n" not in data
    return "this is read as the text of a module; give the name of a file as a pathlib.Path" if is_name else ""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParseError(Diagnostic("unreadable-file", f"cannot read the file: {reason}", str(path))) from None


def _check_text(data: bytes, name: str) -> None:
    """Refuse text that would make MLIR's parser overflow the stack, or busy for hours."""
    if _MANY_DIGITS.search(data):
        _refuse_long_numbers(data, name)
    if _unmatched(data) <= _MAX_BRACKETS:
        return
    # Strings and comments may hold unbalanced brackets, so only the exact scan may refuse.
    position = _too_deep(data)
    if position is None:
        return
    message = f"brackets are nested more than {_MAX_BRACKETS} deep"
    hint = "move what is inside to functions, and call them"
    raise ParseError(Diagnostic("nested-too-deeply", message, _position(data, position, name), hint=hint))


def _refuse_long_numbers(data: bytes, name: str) -> None:
    """Refuse numbers of very many digits, which take MLIR's parser the square of their length; not those in strings."""
    for match in _TOKEN_OR_NUMBER.finditer(data):
        if match.group()[:1].isdigit():
            message = f"a number has more than {_MAX_DIGITS} digits"
            raise ParseError(Diagnostic("malformed-module", message, _position(data, match.start(), name)))


def _position(data: bytes, offset: int, name: str) -> str:
    line = data.count(b"\n", 0, offset) + 1
    column = offset - data.rfind(b"\n", 0, offset)
    return f"{name}:{line}:{column}"


def _unmatched(data: bytes) -> int:
    """Return how many opening brackets remain when the innermost pairs were removed, some levels deep."""
    brackets = data.replace(b"->", b"").translate(None, delete=_NO_BRACKETS)
    for _ in range(_MAX_BRACKETS):
        size = len(brackets)
        for pair in (b"()", b"[]", b"{}", b"<>"):
            brackets = brackets.replace(pair, b"")
        if len(brackets) in (0, size):
            break
    return sum(brackets.count(bracket) for bracket in (b"(", b"[", b"{", b"<"))


def _too_deep(data: bytes) -> int | None:
    """Return where brackets outside strings and comments first nest too deeply, or None."""
    depth = 0
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > _MAX_BRACKETS:
                return match.start()
        elif token in _CLOSING:
            depth -= 1
    return None


def verify(module: ir.Module, name: str = "-") -> None:
    """Run MLIR's verifiers; see `verify_module`."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise convert_error(error, VerificationError, "invalid-module", name) from None
