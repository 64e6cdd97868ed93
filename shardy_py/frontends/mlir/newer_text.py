"""Texts of Shardy that are newer than jaxlib's parser: reductions other than sums.

Upstream writes ``unreduced=max{"x"}`` in a sharding and ``sdy.all_reduce max {"x"}``. jaxlib 0.10.2 reads neither. So a
module that has them is read in an older text: a mesh gets an axis of size 1 for each reduction, ``"reduction:max"``,
and an unreduced sharding is unreduced along that axis, too; a collective has the attribute ``reduction_op``. The op
graph knows nothing of such axes, and what is printed is the newer text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardy_py.sharding.combiner import reduction_op_code, reduction_op_text
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.support.late_patterns import late_pattern

_OTHERS: tuple[ReductionOp, ...] = ("max", "min")
_MARK = '"reduction:'
_HIDDEN = late_pattern(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_UNREDUCED = late_pattern(r"\bunreduced\s*=\s*(sum|max|min)\s*(?=\{)")
_COLLECTIVE = late_pattern(r"\bsdy\.(?:all_reduce|reduce_scatter)\s+(sum|max|min)\s*(?=[\[{])")
_MESH = late_pattern(r"(?:\bsdy\.mesh\s+@[^=]*=\s*<|\bmesh<)\[")
_NEWER = late_pattern(rf"{_UNREDUCED.pattern}|{_COLLECTIVE.pattern}")
_CLOSING = {"{": "}", "[": "]", "<": ">", "(": ")"}

_MARKED_MESH = late_pattern(r',?\s*"reduction:(?:max|min)"=1')
_MARKED_AXES = late_pattern(r'unreduced=\{([^{}]*?),?\s*"reduction:(max|min)"\}')
_MARKED_COLLECTIVE = late_pattern(
    r"\bsdy\.(?:all_reduce|reduce_scatter) (?P<axes>)[^\n]*?(?P<open> \{)(?P<before>[^\n{}]*?)"
    r"(?P<attribute>reduction_op = (?P<code>\d) : i32)(?P<after>[^\n{}]*\})"
)
Edit = tuple[int, int, str]
"""The begin and the end of a part of a text, and the text that takes its place."""


def is_newer(text: str) -> bool:
    """Return whether a text has reductions that jaxlib does not read."""
    return _NEWER.search(without_strings(text)) is not None


def to_older(text: str) -> str:
    """Return a text in the form that jaxlib reads; a text without newer parts as it is.

    >>> to_older('#sdy.sharding<@mesh, [{}], unreduced=max{"x"}>')
    '#sdy.sharding<@mesh, [{}], unreduced={"x", "reduction:max"}>'
    """
    plain = without_strings(text)
    if _NEWER.search(plain) is None:
        return text
    edits = [*_sharding_edits(plain), *_collective_edits(plain), *_mesh_edits(plain)]
    return edited(text, edits)


def has_marks(text: str) -> bool:
    """Return whether a text is one that `to_older` has changed."""
    return _MARK in text


def marked_mesh(text: str) -> str:
    """Return the text of a mesh with an axis for each reduction, as those of a text that `to_older` has changed.

    >>> marked_mesh('#sdy.mesh<["x"=2]>')
    '#sdy.mesh<["x"=2, "reduction:max"=1, "reduction:min"=1]>'
    """
    return edited(text, _mesh_edits(without_strings(text)))


def to_newer(text: str) -> str:
    """Return a text of a module that `to_older` has changed as upstream writes it; any other as it is.

    >>> to_newer('#sdy.sharding<@mesh, [{}], unreduced={"x", "reduction:max"}>')
    '#sdy.sharding<@mesh, [{}], unreduced=max{"x"}>'
    """
    if _MARK not in text:
        return text
    text = _MARKED_MESH.sub("", text)
    text = _MARKED_AXES.sub(r"unreduced=\2{\1}", text)
    edits = [edit for match in _MARKED_COLLECTIVE.finditer(without_strings(text)) for edit in _word_edits(match)]
    return edited(text, edits)


def _word_edits(match: re.Match[str]) -> Iterable[Edit]:
    """Put the word of the reduction of a collective before its axes, and take its attribute out."""
    code = int(match["code"])
    if not 0 < code <= len(_OTHERS):
        return
    yield match.start("axes"), match.start("axes"), f"{_OTHERS[code - 1]} "
    start, end = match.span("attribute")
    if match["before"]:
        start -= len(", ")
    elif match["after"] != "}":
        end += len(", ")
    else:
        start, end = match.start("open"), match.end()
    yield start, end, ""


def without_strings(text: str) -> str:
    """Return a text of the same length in which strings and comments have no contents."""
    return _HIDDEN.sub(lambda match: "_" * len(match[0]), text)


def _sharding_edits(plain: str) -> Iterable[Edit]:
    for match in _UNREDUCED.finditer(plain):
        yield match.start(), match.end(), "unreduced="
        if match[1] in _OTHERS:
            end = closing(plain, match.end())
            yield end, end, f', {_MARK}{match[1]}"'


def _collective_edits(plain: str) -> Iterable[Edit]:
    for match in _COLLECTIVE.finditer(plain):
        yield match.start(1), match.end(), ""
        code = reduction_op_code(reduction_op_text(match[1]))  # type: ignore[arg-type]
        opening = plain.find("out_sharding", match.end())
        opening = plain.find("<", opening)
        if not code or opening < 0:
            continue
        end = closing(plain, opening) + 1
        rest = re.compile(r"\s*\{").match(plain, end)
        yield (
            (rest.end(), rest.end(), f"reduction_op = {code} : i32, ")
            if rest is not None
            else (end, end, f" {{reduction_op = {code} : i32}}")
        )


def _mesh_edits(plain: str) -> Iterable[Edit]:
    """Add an axis for each reduction to all meshes, the last ones, so that axes stay in the order of the mesh."""
    for match in _MESH.finditer(plain):
        end = closing(plain, match.end() - 1)
        if plain[match.end() : end].strip():
            yield end, end, "".join(f', {_MARK}{word}"=1' for word in _OTHERS)


def closing(plain: str, opening: int) -> int:
    """Return the position of the bracket that closes the one at a position; the end of the text where there is none."""
    stack: list[str] = []
    for position in range(opening, len(plain)):
        character = plain[position]
        if character in _CLOSING:
            stack.append(_CLOSING[character])
        elif stack and character == stack[-1]:
            stack.pop()
            if not stack:
                return position
    return len(plain)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits, which do not overlap."""
    parts, last = [], 0
    for start, end, new in sorted(edits):
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])
