"""HLO text to StableHLO through jaxlib's own parser, with the layouts of the entry.

The parser runs in another process; before that every shape in the text is checked by our strict parser, which
knows the place of what XLA would abort on or let through.
"""

from __future__ import annotations

import base64
import re
from io import BytesIO
from pathlib import Path

from attrs import evolve

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.frontends.mlir.isolated_parse import parse_isolated
from shardy_py.frontends.sources import source_text
from shardy_py.jax.gspmd.importer.annotated import mark_round_trip
from shardy_py.jax.hlo import HloModule
from shardy_py.jax.hlo.parser_process import PARSER
from shardy_py.jax.hlo.tuples import flatten_tuples
from shardy_py.layout.lexer import LayoutCursor
from shardy_py.layout.parse import read_shape
from shardy_py.layout.shape import AnyShape
from shardy_py.support.element_types import ELEMENT_TYPES

_STRING_OR_SHAPE = re.compile(
    r'"(?:[^"\\\n]++|\\.)*+"?|/\*.*?(?:\*/|\Z)|'
    rf"(?<![\w.%-])(?:{'|'.join(sorted(ELEMENT_TYPES, key=len, reverse=True))})\s*\[",
    re.DOTALL,
)
_PLACE = re.compile(r"was parsing (\d+):(\d+): error: ([^\n]*)")


def load(source: str | Path, name: str, *, isolated: bool = False) -> HloModule:
    """Return the module in HLO text; see `import_hlo`.

    Args:
        source: The text, or the path of a file with it.
        name: What locations call the text; a path is called by its own name.
        isolated: Whether MLIR reads what XLA wrote in another process first.
    """
    text, name = source_text(source, name)
    _check_shapes(text, name)
    answer = _convert(text, name)
    code = base64.b64decode(answer["module"])
    try:
        code = _normal_form(parse_isolated(code, name=name).content if isolated else code, name)
    except ParseError as error:
        raise ParseError(*(_located(item, text, name) for item in error.diagnostics)) from None
    parameters, result = _entry_layout(answer["layout"])
    return HloModule(
        answer["name"], code, import_module(parse_module(code, name=name)), parameters, result, answer["text"]
    )


def serialize(source: str | Path, name: str) -> bytes:
    """Return HLO text as XLA serializes modules (``HloModuleProto``).

    Raises:
        ParseError: the text cannot be read, or is not valid HLO.
    """
    text, name = source_text(source, name)
    _check_shapes(text, name)
    answer = PARSER.ask("parse", text.encode(), name)
    if "error" in answer:
        raise _parse_error(answer["error"], name)
    return base64.b64decode(answer["module"])


def _normal_form(code: bytes, name: str) -> bytes:
    """Return a StableHLO module without tuples where they can go, and marked if it keeps Shardy's texts."""
    program = import_module(parse_module(code, name=name))
    has_changed = flatten_tuples(program)
    if not mark_round_trip(program) and not has_changed:
        return code
    buffer = BytesIO()
    write_back(program).operation.write_bytecode(buffer)
    return buffer.getvalue()


def _check_shapes(text: str, name: str) -> None:
    """Reject invalid shapes with their locations; shapes that only XLA can read are left to XLA."""
    cursor = LayoutCursor(text)
    for match in _STRING_OR_SHAPE.finditer(text):
        if not match.group().endswith("["):
            continue
        cursor.position = match.start()
        try:
            read_shape(cursor)
        except ParseError as error:
            diagnostic = error.diagnostics[0]
            if diagnostic.code != "unsupported-layout":
                raise ParseError(evolve(diagnostic, location=f"{name}:{diagnostic.location}")) from None


def _convert(text: str, name: str) -> dict[str, str]:
    """Return the StableHLO bytecode that the worker makes of a text."""
    answer = PARSER.convert(text, name)
    if "error" in answer:
        raise _parse_error(answer["error"], name)
    return answer


def _parse_error(error: str, name: str) -> ParseError:
    """Return XLA's error as a `ParseError` at the location that it names."""
    matches = _PLACE.findall(error)
    if not matches:
        return ParseError(Diagnostic("malformed-module", error.split("\n", 1)[0], name))
    line, column, _ = matches[0]
    # XLA reports the attempts it made at this place, and counts columns from 0.
    message = "; ".join(dict.fromkeys(text.rstrip(": ") for *place, text in matches if place == [line, column]))
    return ParseError(Diagnostic("malformed-module", message, f"{name}:{line}:{int(column) + 1}"))


def _located(diagnostic: Diagnostic, text: str, name: str) -> Diagnostic:
    """Return an error about an op of the StableHLO module with the line of its instruction.

    XLA's parser does not check types; MLIR does, and knows an instruction by its name, or by that in its metadata.
    Names may occur once per computation, so that only one that is unique says which line it is.
    """
    quoted = re.escape(diagnostic.location)
    by_name, by_metadata = rf"^[ \t]*(?:ROOT\s+)?%?{quoted}\s*=", rf'\bop_name="{quoted}"'
    for pattern in (by_name, by_metadata) if diagnostic.location else ():
        lines = [text.count("\n", 0, match.end()) for match in re.finditer(pattern, text, re.MULTILINE)]
        if len(lines) == 1:
            line = text.split("\n")[lines[0]]
            return evolve(diagnostic, location=f"{name}:{lines[0] + 1}:{len(line) - len(line.lstrip()) + 1}")
    return evolve(diagnostic, location=name)


def _entry_layout(text: str) -> tuple[tuple[AnyShape, ...], AnyShape]:
    """Return the shapes in ``{(parameters)->result}``."""
    cursor = LayoutCursor(text)
    cursor.expect("{")
    cursor.expect("(")
    parameters: list[AnyShape] = []
    while not cursor.accept(")"):
        if parameters:
            cursor.expect(",")
        parameters.append(read_shape(cursor))
    cursor.expect("->")
    return tuple(parameters), read_shape(cursor)
