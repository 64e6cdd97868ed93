"""The bytes or the text of a source and its name in locations."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from shardy_py.errors import Diagnostic, ParseError


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
        raise ParseError(Diagnostic("malformed-module", f"the text is no valid Unicode: {error}", name)) from None


def source_text(source: str | Path, name: str) -> tuple[str, str]:
    """Return the text of a source and its name in locations.

    Raises:
        ParseError: it cannot be read, or is no valid Unicode.
    """
    data, name = source_bytes(source, name)
    try:
        return data.decode(), name
    except UnicodeDecodeError as error:
        raise ParseError(Diagnostic("unreadable-file", f"cannot read the file: {error}", name)) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(BOM_UTF8)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParseError(Diagnostic("unreadable-file", f"cannot read the file: {reason}", str(path))) from None
