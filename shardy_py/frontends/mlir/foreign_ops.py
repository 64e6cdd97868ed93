"""Ops of dialects that jaxlib does not have, in the usual format of MLIR, written in the generic one, which it reads.

The usual format is ``operands attributes : (types) -> types``. MLIR reads ops that it does not know in the generic
format only, and drops their properties, ``<{...}>``; these become attributes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from shardy_py.frontends.mlir.newer_text import Edit, closing, edited, without_strings
from shardy_py.support.late_patterns import late_pattern

_PLAIN = late_pattern(r"(?:^|[={};])[ \t]*(?P<name>(?P<dialect>[A-Za-z_]\w*)\.[\w.$]+)(?=[ \t\n])", re.M)
_OPERANDS = late_pattern(r"[ \t]*(?P<operands>(?:%[\w#$.-]+(?:\s*,\s*%[\w#$.-]+)*)?)[ \t]*")
_TYPES = late_pattern(r"\s*:\s*")
_GENERIC = late_pattern(r'"(?P<dialect>[A-Za-z_]\w*)\.[\w.$]+"\(')
_PROPERTIES = late_pattern(r"[ \t]*(?:\[[^\]\n]*\][ \t]*)?<\{")
_REGIONS = late_pattern(r"[ \t]*\(")
_ATTRIBUTES = late_pattern(r"[ \t]*\{")
_LOCATION = late_pattern(r"[ \t]+loc\(.*")
_RESULTS = late_pattern(r"%[\w$.-]+(?::(?P<count>\d+))?[ \t]*(?:,[^=\n]*)?=[ \t]*\Z")


def has_foreign_properties(data: bytes, known: Container[str]) -> bool:
    """Return whether a text has generic ops of other dialects with properties."""
    if b"<{" not in data:
        return False
    names = {match.decode() for match in re.findall(rb'"([A-Za-z_]\w*)\.[\w.$]+"\([^)\n]*\)[ \t]*<\{', data)}
    return any(name not in known for name in names)


def to_generic(text: str, known: Container[str]) -> str:
    """Return a text in which the ops of other dialects are in generic form, without properties.

    >>> to_generic("%0 = toy.add %a, %b {n = 1 : i64} : (f32, f32) -> f32", ())
    '%0 = "toy.add"(%a, %b) {n = 1 : i64} : (f32, f32) -> f32'
    >>> to_generic("toy.yield %0 : f32", ())
    '"toy.yield"(%0) : (f32) -> ()'

    Args:
        text: The text of a module.
        known: The names of the dialects that are read as they are.
    """
    plain = without_strings(text)
    edits = [*_plain_edits(text, plain, known), *_property_edits(text, plain, known)]
    return edited(text, edits)


def _plain_edits(text: str, plain: str, known: Container[str]) -> Iterator[Edit]:
    for match in _PLAIN.finditer(plain):
        if match["dialect"] in known:
            continue
        operands = _OPERANDS.match(plain, match.end())
        assert operands is not None
        at = operands.end()
        if plain.startswith("{", at):
            at = closing(plain, at) + 1
        types = _TYPES.match(plain, at)
        count = len(operands["operands"].split(",")) if operands["operands"] else 0
        begin = types.end() if types else at
        line_end = plain.find("\n", begin)
        line_end = line_end if line_end >= 0 else len(plain)
        comment = text.find("//", begin, line_end)
        rest = plain[begin : comment if comment >= 0 else line_end]
        if types is None and rest.strip(" \t\r}"):
            continue
        start = match.start("name")
        yield start, operands.end(), f'"{match["name"]}"({operands["operands"]}) '
        if types is None:
            yield at, at, f" : ({', '.join(['none'] * count)}) -> ()" if count else " : () -> ()"
        elif plain.startswith("(", types.end()):
            continue
        elif "->" not in rest:
            results = _RESULTS.search(plain, plain.rfind("\n", 0, start) + 1, start)
            last = types.end() + len(_LOCATION.sub("", rest).rstrip(" \t\r"))
            yield types.end(), last, _functional(plain[types.end() : last], count, results)
        else:
            arrow = plain.index("->", types.end())
            yield types.end(), arrow, f"({plain[types.end() : arrow].strip()}) "


def _functional(types: str, count: int, results: re.Match[str] | None) -> str:
    """Return the type of a function of an op that lists types without an arrow: those of operands, or one for all."""
    if results is None:
        return f"({types}) -> ()"
    return f"({', '.join([types] * count)}) -> {types}"


def _property_edits(text: str, plain: str, known: Container[str]) -> Iterator[Edit]:
    """Put the properties of an op in front of its attributes."""
    for match in _GENERIC.finditer(text):
        if match["dialect"] in known:
            continue
        opening = _PROPERTIES.match(plain, closing(plain, match.end() - 1) + 1)
        if opening is None:
            continue
        end = closing(plain, opening.end() - 1)
        content = text[opening.end() : end]
        yield opening.end() - 2, end + 2, ""
        regions = _REGIONS.match(plain, end + 2)
        last = closing(plain, regions.end() - 1) + 1 if regions else end + 2
        attributes = _ATTRIBUTES.match(plain, last)
        separator = ", " if content.strip() else ""
        yield (
            (attributes.end(), attributes.end(), content + separator) if attributes else (last, last, f" {{{content}}}")
        )
