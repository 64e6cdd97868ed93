"""Strings of modules that are no UTF-8: MLIR takes them, its Python bindings end the process on them as names.

Values of attributes may have such strings, for example what a custom call passes on.
"""

from __future__ import annotations

import re

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.mlir.bytecode import read_number
from shardy_py.sharding.lexer import unescape

_HIGH_ESCAPE = re.compile(rb"\\[89A-Fa-f][0-9A-Fa-f]")
_STRING = rb'"((?:[^"\\\n]++|\\.)*+)"|"|//[^\n]*+'
_BEFORE_VALUE = rb"=\s*\Z|loc\(\s*\Z"
_NAMING = rb"(?:sym_name|callee|mesh_name)\s*=\s*\Z"
_AFTER_OP_NAME = re.compile(rb"\s*+\(")
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
        message = "a name or string is no valid UTF-8"
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
