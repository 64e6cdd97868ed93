"""The characters of XLA's shape and instruction text, and errors that point at them."""

from __future__ import annotations

import re
from typing import NoReturn

from shardy_py.errors import Diagnostic, ParseError

_SPACE = re.compile(r"(?:\s++|/\*.*?\*/)*+", re.DOTALL)
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_INT64_MAX = 2**63 - 1
_MAX_DIGITS = 1000
"""More digits than numbers have, be they written with many zeros in front."""
_SHOWN = 40
_MAX_EXCERPT = 200


class LayoutCursor:
    """A position in a text; blanks and ``/* */`` comments between tokens do not count."""

    __slots__ = ("position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def skip(self) -> int:
        """Move over blanks and comments and return the position."""
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.position

    @property
    def at_end(self) -> bool:
        """True if only blanks and comments are left."""
        return self.skip() >= len(self.text)

    def sees(self, text: str) -> bool:
        """Return whether the text comes next."""
        return self.text.startswith(text, self.skip())

    def accept(self, text: str) -> bool:
        """Move over the text and return True if it comes next."""
        is_next = self.sees(text)
        self.position += len(text) * is_next
        return is_next

    def expect(self, text: str, *alternatives: str) -> None:
        """Move over the text; ``alternatives`` only complete the message of the error."""
        if not self.accept(text):
            self.fail(" or ".join(f"'{item}'" for item in (text, *alternatives)))

    def word(self, what: str) -> str:
        """Return the name that comes next."""
        return self._match(_WORD, what)

    def integer(self, what: str, *, least: int | None = None) -> int:
        """Return the integer that comes next; it fits 64 bits and is not below ``least``."""
        start = self.skip()
        digits = self._match(_INTEGER, what)
        value = int(digits) if len(digits) < _MAX_DIGITS else _INT64_MAX + 1
        if abs(value) > _INT64_MAX:
            self.refuse("integer-overflow", f"{digits[:_SHOWN]} does not fit 64 bits", start)
        if least is not None and value < least:
            self.refuse("invalid-number", f"{value} where {what} of at least {least} is expected", start)
        return value

    def fail(self, expected: str) -> NoReturn:
        """Raise the error that something else is expected here."""
        start = self.skip()
        next_character = f"'{self.text[start]}'" if start < len(self.text) else "the end"
        self.refuse("malformed-shape", f"expected {expected}, found {next_character}", start)

    def refuse(self, code: str, reason: str, position: int | None = None) -> NoReturn:
        """Raise an error at a position, by default the present one."""
        start = self.position if position is None else position
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        source = self.text.split("\n")[line - 1]
        excerpt = f"{source}\n{' ' * (column - 1)}^" if len(source) <= _MAX_EXCERPT else ""
        raise ParseError(Diagnostic(code, reason, f"{line}:{column}", excerpt=excerpt))

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self.text, self.skip())
        if match is None:
            self.fail(what)
        self.position = match.end()
        return match.group()
