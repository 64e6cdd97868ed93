"""The process that reads xDSL modules of unknown origin first, for `shardy_py.frontends.xdsl`."""

from __future__ import annotations

from importlib import import_module

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.isolation import answer_reader


def main() -> None:
    """Read the module that the parent sends."""
    answer_reader(_prepare, _read)


def _prepare(data: bytes) -> None:
    import_module("shardy_py.frontends.xdsl.importer")
    import_module("shardy_py.frontends.xdsl.load")


def _read(data: bytes, name: str) -> bytes:
    """Read a module; its text is all that the parent needs."""
    from shardy_py.frontends.xdsl import import_module, parse_module

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(Diagnostic("unreadable-file", f"cannot read the file: {error}", name)) from None
    import_module(parse_module(text, name=name))
    return b""
