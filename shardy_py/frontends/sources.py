"""Sources of text: their bytes, their names in locations, and limits on what the parsers of other libraries get."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.support.late_patterns import late_pattern


def is_native_module(source: object) -> bool:
    """Return whether an object is a module of jaxlib, without importing it."""
    classes = type(source).__mro__
    return any(item.__name__ == "Module" and item.__module__.startswith("jaxlib.") for item in classes)


def source_bytes(source: str | bytes | Path, name: str) -> tuple[bytes, str]:
    """Return the bytes of a source and what locations call it.

    Raises:
        ParseError: it cannot be read, or is text with characters that are none.
    """
    if isinstance(source, Path):
        return _read(source), str(source)
    try:
        return source.encode() if isinstance(source, str) else source, name
    except UnicodeEncodeError as error:
        raise ParseError(Diagnostic("malformed-module", f"the text is not valid Unicode: {error}", name)) from None


def source_text(source: str | Path, name: str) -> tuple[str, str]:
    """Return the text of a source and its name in locations.

    Raises:
        ParseError: it cannot be read, or is not valid Unicode.
    """
    data, name = source_bytes(source, name)
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise ParseError(Diagnostic("unreadable-file", f"cannot read the file: {error}", name)) from None


def check_exists(path: Path) -> None:
    """Check that a path leads to something.

    Raises:
        ParseError: it does not.
    """
    try:
        path.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(BOM_UTF8)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ParseError:
    reason = getattr(error, "strerror", None) or str(error)
    return ParseError(Diagnostic("unreadable-file", f"cannot read the file: {reason}", str(path)))


_MAX_BRACKETS = 512
"""The limit on nested brackets: MLIR's parser is recursive and would overflow its stack, which ends the process."""
_TOKEN = late_pattern(rb'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+|->|[][(){}<>]')
_CLOSED_STRING = late_pattern(rb'"(?:[^"\\\n]++|\\.)*+"')
_MAX_DIGITS = 2000
_MANY_DIGITS = late_pattern(rb"(?<![0-9])[0-9]{%d}" % _MAX_DIGITS)
_TOKEN_OR_NUMBER = late_pattern(rb'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+|[0-9]{%d}' % _MAX_DIGITS)
_OPENING, _CLOSING = frozenset((b"(", b"[", b"{", b"<")), frozenset((b")", b"]", b"}", b">"))
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}<>"))


def check_text(data: bytes, name: str) -> None:
    """Refuse text that would make a parser overflow the stack, or busy for hours.

    Raises:
        ParseError: brackets are nested too deeply, or a number is too long.
    """
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


def refuse_open_strings(data: bytes, name: str) -> None:
    """Refuse strings without an end, on which some lexers take exponential time.

    Raises:
        ParseError: a string does not end in its line.
    """
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token[:1] == b'"' and _CLOSED_STRING.fullmatch(token) is None:
            message = "a string does not end in its line"
            raise ParseError(Diagnostic("malformed-module", message, _position(data, match.start(), name)))


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
