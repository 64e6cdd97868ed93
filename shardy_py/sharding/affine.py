"""Indexing maps: which loop indexes which dimension of a tensor, in MLIR's notation for affine maps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from attrs import evolve, frozen

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.texts import refuse_bad_text


@frozen
class Linear:
    """A sum of loop indices, each times a number, and an offset: ``d0 * 4 + d1``, ``-d0 + 7``, ``0``."""

    terms: tuple[tuple[int, int], ...]
    offset: int = 0


@frozen
class Part:
    """A digit of one loop index: ``d0 floordiv 4``, ``d0 mod 4``, ``(d0 floordiv 4) mod 8``.

    Args:
        dim: The loop.
        divisor: What the index is divided by; 1 for a remainder alone.
        modulus: Where the quotient begins again; None for a quotient alone.
    """

    dim: int
    divisor: int
    modulus: int | None = None

    @property
    def end(self) -> int | None:
        """The number of iterations after which the digit begins again; None if it never does."""
        return None if self.modulus is None else self.divisor * self.modulus


@frozen
class Opaque:
    """An expression that no factors stand for, over some loop indices."""

    dims: tuple[int, ...]


Expression = Linear | Part | Opaque


@frozen(cache_hash=True)
class IndexingMap:
    """How loops index one tensor.

    Args:
        num_loops: The number of loops.
        results: One expression per dimension of the tensor.
    """

    num_loops: int
    results: tuple[Expression, ...]

    @classmethod
    def of_loops(cls, num_loops: int, loops: Iterable[int]) -> IndexingMap:
        """Return the map of a tensor each of whose dimensions is indexed by one loop."""
        return cls(num_loops, tuple(Linear(((loop, 1),)) for loop in loops))


_MAP = re.compile(r"\s*+(?:affine_map<)?\s*+\(([^()]*+)\)\s*+(?:\[[^\]]*+\])?\s*+->\s*+\((.*)\)\s*+>?\s*+$", re.DOTALL)

_TOKENS = re.compile(r"(?:\s|[A-Za-z_]\w*+|[0-9]++(?![\w.])|[()+*,-])*+", re.ASCII)
"""What expressions are made of; Python, which reads them, knows much more."""


def parse_indexing_map(text: str) -> IndexingMap:
    """Return an indexing map in MLIR's notation for affine maps, with or without ``affine_map<>``.

    Raises:
        RuleError: the text is no affine map.

    >>> parse_indexing_map("(d0, d1) -> (d1, 0)").results
    (Linear(terms=((1, 1),), offset=0), Linear(terms=(), offset=0))
    """
    match = _MAP.match(text) if isinstance(text, str) else None
    if match is None or not _TOKENS.fullmatch(match[2]):
        raise _malformed(text)
    loops = {name.strip(): number for number, name in enumerate(filter(str.strip, match[1].split(",")))}
    # Python has the same operators under other names; there is none left for ceildiv, which is opaque anyway.
    source = re.sub(r"\bceildiv\b", "|", re.sub(r"\bmod\b", "%", re.sub(r"\bfloordiv\b", "//", match[2])))
    with refuse_bad_text("the affine map", code="malformed-indexing-map", error=RuleError):
        try:
            tree = ast.parse(f"({source.strip()},)" if source.strip() else "()", mode="eval").body
        except SyntaxError:
            raise _malformed(text) from None
        if not isinstance(tree, ast.Tuple):
            raise _malformed(text)
        return IndexingMap(len(loops), tuple(_expression(node, loops) for node in tree.elts))


def _malformed(text: str) -> RuleError:
    return RuleError(
        Diagnostic("malformed-indexing-map", "this is no affine map", hint=f"the text is {str(text)[:200]!r}")
    )


def _expression(node: ast.expr, loops: dict[str, int]) -> Expression:
    linear = _linear(node, loops)
    if linear is not None:
        terms, offset = linear
        return Linear(tuple(sorted((dim, factor) for dim, factor in terms.items() if factor)), offset)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        inside, by = _as_part(_expression(node.left, loops)), _linear(node.right, loops)
        if inside is not None and by is not None and not by[0] and by[1] > 0:
            part = divided_part(inside, by[1]) if isinstance(node.op, ast.FloorDiv) else reduced_part(inside, by[1])
            if part is not None:
                return part
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return Opaque(tuple(sorted(loops[name] for name in names if name in loops)))


def _as_part(expression: Expression) -> Part | None:
    """Return a digit as it is, and a loop index as the digit that is all of it."""
    if isinstance(expression, Linear) and not expression.offset and len(expression.terms) == 1:
        ((dim, factor),) = expression.terms
        return Part(dim, 1) if factor == 1 else None
    return expression if isinstance(expression, Part) else None


def divided_part(part: Part, by: int) -> Part | None:
    """Return a digit divided by a number, or None where that is no digit."""
    if part.modulus is None:
        return evolve(part, divisor=part.divisor * by)
    return None if part.modulus % by else Part(part.dim, part.divisor * by, part.modulus // by)


def reduced_part(part: Part, by: int) -> Part | None:
    """Return a digit modulo a number, or None where that is no digit."""
    if part.modulus is not None and part.modulus % by:
        return None
    return evolve(part, modulus=by)


def _linear(node: ast.expr, loops: dict[str, int]) -> tuple[dict[int, int], int] | None:
    """Return the factors of the loops and the offset of a linear expression, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {}, node.value
    if isinstance(node, ast.Name) and node.id in loops:
        return {loops[node.id]: 1}, 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _scaled(_linear(node.operand, loops), -1)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _linear(node.left, loops), _linear(node.right, loops)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return _scaled(left, right[1]) if not right[0] else _scaled(right, left[1]) if not left[0] else None
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return None
    sign = -1 if isinstance(node.op, ast.Sub) else 1
    terms = {dim: left[0].get(dim, 0) + sign * right[0].get(dim, 0) for dim in {**left[0], **right[0]}}
    return terms, left[1] + sign * right[1]


def _scaled(linear: tuple[dict[int, int], int] | None, factor: int) -> tuple[dict[int, int], int] | None:
    if linear is None:
        return None
    return {dim: item * factor for dim, item in linear[0].items()}, linear[1] * factor
