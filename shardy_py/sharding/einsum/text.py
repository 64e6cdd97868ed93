"""Reads the dimensions of tensors out of a rule string."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.support.arguments import parse_integer, shown
from shardy_py.support.late_patterns import late_pattern
from shardy_py.values import frozen

Place = tuple[str, int]
"""A factor name and its column."""

_TOKEN = late_pattern(
    r"(?P<space>\s+)|(?P<dots>\.\.\.[0-9]*)|(?P<arrow>->)|(?P<name>[^\W\d]\w*)|(?P<mark>[(),])|(?P<bad>.)"
)


_SPACES = "dimensions are separated by spaces, tensors by commas: 'i k, k j -> i j'"
_HINTS = {
    "=": "results stand after '->'",
    "[": _SPACES,
    "]": _SPACES,
    "{": _SPACES,
    "*": "any number of dimensions is '...'",
    "…": "any number of dimensions is '...', three dots",
    ".": "any number of dimensions is '...'",
}
"""Hints for characters that other notations have."""
_WIDTH = 100
"""The number of characters of a long rule that are shown on either side of a column."""


@frozen
class Dim:
    """One dimension: its factors, major first, each with its column."""

    factors: tuple[Place, ...]

    @property
    def names(self) -> list[str]:
        """The names of the factors."""
        return [name for name, _ in self.factors]


@frozen
class TensorSpec:
    """The dimensions of one tensor.

    Args:
        dims: The dimensions that are written out.
        batch: The number of the ellipsis among them, or None.
        column: Where the tensor begins.
        before: The number of dimensions before the ellipsis.
    """

    dims: tuple[Dim, ...]
    batch: int | None
    column: int
    before: int = 0


@frozen
class _Token:
    kind: str
    text: str
    column: int


def excerpt(text: str, column: int = -1) -> str:
    """Return a text with a caret under a column, if there is a column.

    >>> print(excerpt("i j -> i", 2))
    i j -> i
      ^
    """
    start = max(0, column - _WIDTH) if len(text) > 2 * _WIDTH else 0
    line = re.sub(r"\s", " ", text[start : start + 2 * _WIDTH])
    return line if column < 0 else f"{line}\n{' ' * (column - start)}^"


def parse_tensors(text: str) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Return the operands and the results of a rule string.

    Raises:
        RuleError: it is not a rule; the error shows the column.
    """
    tokens = list(_tokens(text))
    arrows = [token for token in tokens if token.kind == "arrow"]
    if not arrows:
        raise _error(text, "the rule has no '->'", len(text.rstrip()), hint="write the results after '->'")
    if len(arrows) > 1:
        raise _error(text, "the rule has a second '->'", arrows[1].column)
    index = tokens.index(arrows[0])
    end = arrows[0].column
    return _tensors(text, tokens[:index], end), _tensors(text, tokens[index + 1 :], len(text.rstrip()))


def _error(text: str, message: str, column: int, *, hint: str = "") -> RuleError:
    return RuleError(Diagnostic("rule-syntax", message, hint=hint, excerpt=excerpt(text, column)))


def _tokens(text: str) -> Iterator[_Token]:
    if not isinstance(text, str):
        message = f"a rule is a text such as 'i j -> j i', not {shown(text)} ({type(text).__name__})"
        raise RuleError(Diagnostic("rule-syntax", message))
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "bad"
        if kind == "bad" or (kind == "name" and match.group().startswith("_")):
            named = "names begin with a letter; a dimension of its own gets a name of its own"
            hint = _HINTS.get(match.group()[0], named)
            raise _error(text, f"unexpected {match.group()[0]!r}", match.start(), hint=hint)
        if kind != "space":
            yield _Token(kind, match.group(), match.start())


def _tensors(text: str, tokens: list[_Token], end: int) -> tuple[TensorSpec, ...]:
    """Return the tensors on one side of the arrow; an empty side is a scalar."""
    groups: list[list[_Token]] = [[]]
    ends: list[int] = []
    for token in tokens:
        if token.text == ",":
            groups.append([])
            ends.append(token.column)
        else:
            groups[-1].append(token)
    return tuple(_tensor(text, group, stop) for group, stop in zip(groups, [*ends, end], strict=True))


def _tensor(text: str, tokens: list[_Token], end: int) -> TensorSpec:
    column = tokens[0].column if tokens else max(end - 1, 0)
    dots = [index for index, token in enumerate(tokens) if token.kind == "dots"]
    if not dots:
        return TensorSpec(tuple(_read_dims(text, tokens)), None, column)
    index = dots[0]
    if len(dots) > 1:
        hint = "nothing says which dimensions belong to which"
        raise _error(text, "a second ellipsis in one tensor", tokens[dots[1]].column, hint=hint)
    batch = parse_integer(tokens[index].text[3:] or "0")
    if batch is None:
        raise _error(text, "the number of an ellipsis is too long", tokens[index].column)
    depth = sum({"(": 1, ")": -1}.get(token.text, 0) for token in tokens[:index])
    if depth > 0:
        raise _error(text, "an ellipsis within a compound", tokens[index].column, hint="it stands for whole dimensions")
    before = tuple(_read_dims(text, tokens[:index]))
    return TensorSpec((*before, *_read_dims(text, tokens[index + 1 :])), batch, column, len(before))


def _read_dims(text: str, tokens: list[_Token]) -> Iterator[Dim]:
    compound: list[Place] | None = None
    opened = 0
    for token in tokens:
        if token.text == "(":
            if compound is not None:
                raise _error(text, "a compound within a compound", token.column)
            compound, opened = [], token.column
        elif token.text == ")":
            if compound is None:
                raise _error(text, "')' without '('", token.column)
            if len(compound) < 2:
                raise _error(text, "a compound has at least two factors", opened)
            yield Dim(tuple(compound))
            compound = None
        elif compound is None:
            yield Dim(((token.text, token.column),))
        else:
            compound.append((token.text, token.column))
    if compound is not None:
        raise _error(text, "'(' without ')'", opened)
