"""One door for texts from outside: what Python raises of a bad one becomes an error of this package with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError, ParseError, ShardyError

if TYPE_CHECKING:
    import tomllib

_PLACE = r" \(at line (\d+), column (\d+)\)$"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""The characters for control but the tabulator and the end of a line."""
_MANY_DIGITS = r"[0-9](?:_?[0-9]){4000}"


@contextmanager
def refuse_bad_text(
    what: str, *, code: str, location: str = "", error: type[ShardyError] = ParseError
) -> Iterator[None]:
    """Turn the errors of Python that a bad text can lead to into one of this package.

    Args:
        what: The name of the text: ``the attribute``.
        code: The code of the error.
        location: Where the text is.
        error: The class of the error.

    Raises:
        ShardyError: a value has another form, is too large or nested too deeply, or is no valid Unicode.
    """
    try:
        yield
    except RecursionError:
        raise error(Diagnostic(code, f"{what} is nested too deeply", location)) from None
    except MemoryError:
        raise error(Diagnostic(code, f"{what} needs more memory than there is", location)) from None
    except UnicodeError as problem:
        raise error(Diagnostic(code, f"{what} is no valid Unicode: {problem}", location)) from None
    except (ValueError, OverflowError) as problem:
        reason = "a number is too long" if "integer string conversion" in str(problem) else str(problem)
        raise error(Diagnostic(code, f"{what} is not valid: {reason}", location)) from None


def require_text(text: object, what: str, *, code: str, error: type[ShardyError] = ParseError) -> None:
    """Check that a caller gave a text.

    Raises:
        ShardyError: it is something else, or holds characters that are no Unicode.
    """
    if not isinstance(text, str):
        message = f"{what} is a {type(text).__name__}, not a text"
        raise error(Diagnostic(code, message, hint="give a str"))
    with refuse_bad_text(what, code=code, error=error):
        text.encode()


def escape_controls(text: str) -> str:
    r"""Return a text without the characters that a terminal obeys, such as those in the name of a file.

    >>> print(escape_controls("a\x1b[31m.mlir: error"))
    a\x1b[31m.mlir: error
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def parse_toml(text: str, *, code: str, source: str = "") -> dict[str, Any]:
    """Return the data of a TOML text.

    Args:
        text: The text.
        code: The code of errors.
        source: The name of its file, for errors.

    Raises:
        OptionError: it is no TOML, or its numbers or tables are too large.
    """
    require_text(text, "the TOML text", code=code, error=OptionError)
    import tomllib

    with refuse_bad_text("the TOML text", code=code, location=_many_digits(text, source), error=OptionError):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise OptionError(Diagnostic(code, f"this is not TOML: {problem}", _located(problem, source))) from None


def _located(problem: tomllib.TOMLDecodeError, source: str) -> str:
    found = re.search(_PLACE, str(problem))
    return f"{source}:{found[1]}:{found[2]}" if found and source else source


def _many_digits(text: str, source: str) -> str:
    """Return where a number is too long; the name of the file where none is."""
    found = re.search(_MANY_DIGITS, text)
    return f"{source}:{text.count(chr(10), 0, found.start()) + 1}" if found else source
