"""Tokens of attribute text, lists of items between commas, and errors that point at a token."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.support.late_patterns import late_pattern

_TOKEN = re.compile(
    r"""(?:\s++|//[^\n]*+)*+      # white space and comments
    ( @?"(?:[^"\\\n]++|\\.)*+"?  # string or quoted symbol, also one that does not end
    | @[A-Za-z_][\w$.]*         # symbol
    | \#[A-Za-z_][\w$.]*        # attribute name
    | [A-Za-z_][\w$.]*          # keyword
    | ->
    | -?0x[0-9a-fA-F]+ | -?[0-9]+
    | \S
    | \Z )""",
    re.VERBOSE | re.ASCII,
)
# Nothing in it is tried twice, so that a text takes as long as it is, however broken.
_STRING = late_pattern(r'@?"(?:[^"\\\n]++|\\.)*+"')
_ESCAPE = late_pattern(rb'\\(["\\nt]|[0-9a-fA-F]{2})')
_ANY_ESCAPE = late_pattern(r"\\(.)(.?)")
_NAMED = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}
_INT64_MAX = 2**63 - 1
_MAX_DIGITS = 1000
"""More digits than numbers have, be they written with many zeros in front."""


def unescape(body: str) -> str | None:
    """Return the value of the inside of a quoted string, or None where it has an unknown escape."""
    for first, second in _ANY_ESCAPE.findall(body):
        if first not in '"\\nt' and not re.fullmatch("[0-9a-fA-F]{2}", first + second):
            return None
    data = body.encode("utf-8", "surrogateescape")
    data = _ESCAPE.sub(lambda match: _NAMED.get(match[1]) or bytes.fromhex(match[1].decode()), data)
    return data.decode("utf-8", "surrogateescape")


class Cursor:
    """A position in a list of tokens; token ``""`` is the end of the text, which nothing moves past."""

    __slots__ = ("index", "text", "token", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = [*_TOKEN.findall(text), ""]
        self.index = 0
        self.token = self.tokens[0]

    def advance(self) -> str:
        """Return the present token and move to the next."""
        token = self.token
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def ahead(self, count: int) -> str:
        """Return a later token, "" behind the end."""
        index = self.index + count
        return self.tokens[index] if index < len(self.tokens) else ""

    def accept(self, token: str) -> bool:
        """Move on and return True if the present token is ``token``."""
        if self.token != token:
            return False
        self.index += 1
        self.token = self.tokens[self.index]
        return True

    def expect(self, token: str, *alternatives: str) -> None:
        """Move over ``token``; ``alternatives`` only complete the message of the error."""
        if self.token != token:
            self.fail(" or ".join(f"'{item}'" for item in (token, *alternatives)))
        self.index += 1
        self.token = self.tokens[self.index]

    def string(self, what: str) -> str:
        """Return the value of a string token."""
        if self.token[:1] != '"' or not self._ends():
            self.fail(f'{what} in double quotes, like "x"')
        return self._unquote(0)

    def symbol(self) -> str:
        """Return the name of a symbol token."""
        if len(self.token) < 2 or self.token[0] != "@" or (self.token[1] == '"' and not self._ends()):
            self.fail('a mesh name like @mesh, or an inlined mesh like mesh<["x"=2]>')
        return self._unquote(1) if self.token[1] == '"' else self.advance()[1:]

    def _ends(self) -> bool:
        """Return whether a string token has its second quote."""
        return _STRING.fullmatch(self.token) is not None

    def _unquote(self, start: int) -> str:
        body = self.token[start + 1 : -1]
        if "\\" in body:
            value = unescape(body)
            if value is None:
                self.fail(r"a string whose escapes are \", \\, \n, \t or two hex digits")
            body = value
        self.advance()
        return body

    def integer(self, what: str) -> int:
        """Return the value of an integer token."""
        token = self.token
        if not token or not token[-1].isalnum() or not token.lstrip("-")[:1].isdigit():
            self.fail(f"{what}, an integer")
        value = int(token, 16 if "x" in token else 10) if len(token) < _MAX_DIGITS else _INT64_MAX + 1
        if not -_INT64_MAX <= value <= _INT64_MAX:
            self.fail(f"{what} of at most 63 bits")
        self.advance()
        return value

    def end(self) -> None:
        """Check that nothing is left."""
        if self.token:
            self.fail("the end of the text")

    def fail(self, expected: str, *, code: str = "syntax", hint: str = "") -> NoReturn:
        """Raise the error that something else was expected at the present token."""
        offset = self._offset()
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        is_cut = '"' in self.token[:2] and not self._ends()
        token = f"'{self.token[0] if is_cut else _shortened(self.token)}'" if self.token else "the end of the text"
        message = f"column {column}: expected {expected}, but found {token} in: {_excerpt(self.text, offset)}"
        raise ParseError(Diagnostic(code, message, location=f"{line}:{column}", hint=hint))

    def _offset(self) -> int:
        for index, match in enumerate(_TOKEN.finditer(self.text)):
            if index == self.index:
                return match.start(1)
        return len(self.text)


def _shortened(text: str, width: int = 60) -> str:
    return text if len(text) <= width else f"{text[:width]}..."


def _excerpt(text: str, offset: int, width: int = 60) -> str:
    start, end = max(0, offset - width), min(len(text), offset + width)
    body = " ".join(text[start:end].split())
    return ("..." if start else "") + body + ("..." if end < len(text) else "")


_T = TypeVar("_T")


def comma_list(cursor: Cursor, close: str, item: Callable[[Cursor], _T]) -> tuple[_T, ...]:
    """Parse comma-separated items up to and including ``close``; the opening token is consumed already."""
    if cursor.accept(close):
        return ()
    items = [item(cursor)]
    while cursor.accept(","):
        items.append(item(cursor))
    cursor.expect(close, ",")
    return tuple(items)
