"""Check texts from outside, and write amounts as short texts.

An error of Python about a text, or about an input that asks for too much, becomes an error of this package with the
location in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError, ParseError, ShardyError, UnsupportedError, with_article

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
    """Turn Python's errors about a bad text into an error of this package.

    Args:
        what: The name of the text: ``the attribute``.
        code: The code of the error.
        location: Where the text is.
        error: The class of the error.

    Raises:
        ShardyError: a value has another form, is too large or nested too deeply, or is not valid Unicode.
    """
    try:
        yield
    except RecursionError:
        raise error(Diagnostic(code, f"{what} is nested too deeply", location)) from None
    except MemoryError:
        raise error(Diagnostic(code, f"{what} needs more memory than there is", location)) from None
    except UnicodeError as problem:
        raise error(Diagnostic(code, f"{what} is not valid Unicode: {problem}", location)) from None
    except (ValueError, OverflowError) as problem:
        reason = "a number is too long" if "integer string conversion" in str(problem) else str(problem)
        raise error(Diagnostic(code, f"{what} is not valid: {reason}", location)) from None


def require_text(text: object, what: str, *, code: str, error: type[ShardyError] = ParseError) -> None:
    """Check that a caller gave a text.

    Raises:
        ShardyError: it is something else, or holds characters that are not Unicode.
    """
    if not isinstance(text, str):
        message = f"{what} is {with_article(type(text).__name__)}, not a text"
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
        OptionError: it is not TOML, or its numbers or tables are too large.
    """
    require_text(text, "the TOML text", code=code, error=OptionError)
    import tomllib

    with refuse_bad_text("the TOML text", code=code, location=_many_digits(text, source), error=OptionError):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise OptionError(Diagnostic(code, f"this is not TOML: {problem}", _located(problem, source))) from None


def _located(problem: tomllib.TOMLDecodeError, source: str) -> str:
    match = re.search(_PLACE, str(problem))
    return f"{source}:{match[1]}:{match[2]}" if match and source else source


def _many_digits(text: str, source: str) -> str:
    """Return where a number is too long; the name of the file where none is."""
    match = re.search(_MANY_DIGITS, text)
    return f"{source}:{text.count(chr(10), 0, match.start()) + 1}" if match else source


def as_error(error: MemoryError | RecursionError | OverflowError, location: str = "") -> UnsupportedError:
    """Return the error of this package for exhausted memory or recursion, with a hint.

    Args:
        error: The error of Python.
        location: The input, or "" where it is not known.
    """
    if isinstance(error, MemoryError):
        message = "the input needs more memory than there is"
        hint = "give the process more memory, or a smaller program or mesh"
        return UnsupportedError(Diagnostic("out-of-memory", message, location, hint=hint))
    if isinstance(error, RecursionError):
        message = "the input is nested too deeply"
        hint = "nest brackets, regions and calls less deeply; Python's limit is that of sys.setrecursionlimit"
        return UnsupportedError(Diagnostic("nested-too-deeply", message, location, hint=hint))
    message = f"a number of the input or of an option is too large: {error}"
    hint = "sizes, counts and times have to fit into 64 bits"
    return UnsupportedError(Diagnostic("number-too-large", message, location, hint=hint))


_PREFIXES = ("", "k", "M", "G", "T", "P")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES = ((1e9, "ns"), (1e6, "us"), (1e3, "ms"), (1.0, "s"))


def format_bytes(count: int) -> str:
    """Return a number of bytes with a unit.

    >>> format_bytes(512), format_bytes(1536), format_bytes(3 << 20)
    ('512 B', '1.5 KiB', '3.0 MiB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def format_count(count: float) -> str:
    """Return a large number with a prefix.

    >>> format_count(12), format_count(60.5e3), format_count(3.2e12)
    ('12', '60.5 k', '3.20 T')
    """
    size, prefix = count, 0
    while size >= 1000 and prefix < len(_PREFIXES) - 1:
        size, prefix = size / 1000, prefix + 1
    return f"{size:g}" if prefix == 0 else f"{size:.{2 if size < 10 else 1}f} {_PREFIXES[prefix]}"


def format_seconds(seconds: float) -> str:
    """Return a time with a unit.

    >>> format_seconds(0), format_seconds(2.5e-6), format_seconds(0.0421), format_seconds(3)
    ('0 s', '2.50 us', '42.1 ms', '3.00 s')
    """
    if not seconds:
        return "0 s"
    factor, unit = next(((f, u) for f, u in _TIMES if seconds * f < 1000), _TIMES[-1])
    amount = seconds * factor
    return f"{amount:.{2 if amount < 10 else 1 if amount < 100 else 0}f} {unit}"
