"""Scalar bodies on shards: how partial results combine, and whether elements beyond the end change them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import inf
from types import MappingProxyType

from shardy_py.errors import PluginError
from shardy_py.indexing import IndexingMap, OpIndexing, Variable, VariableKind
from shardy_py.indexing.expressions import variables_of
from shardy_py.ir.graph.program import Op
from shardy_py.plugins.bodies.body_text import BodyText
from shardy_py.plugins.bodies.build import element_type, expression_type
from shardy_py.plugins.bodies.terms import BOOLEAN, BYTES, CASTS, Term
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

_COMBINERS: Mapping[str, Combiner] = MappingProxyType(
    {
        "all": Combiner.AND,
        "any": Combiner.OR,
        "max": Combiner.MAX,
        "min": Combiner.MIN,
        "prod": Combiner.MUL,
        "sum": Combiner.ADD,
    }
)
_KEEP_ZERO = frozenset(
    (
        *("abs", "asin", "asinh", "atan", "cbrt", "ceil", "erf", "expm1", "floor", "imag", "log1p", "real", "round"),
        *("sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "complex", "fma", "max", "min"),
    )
)
"""Functions that give zero where all their arguments are zero."""


@frozen
class SharedBody:
    """A scalar body of ops that run on shards.

    Args:
        body: The body.
        indexing: The indexing maps of an op.
    """

    body: BodyText
    indexing: Callable[[Op], OpIndexing | None] | None

    @property
    def word(self) -> str:
        """The combiner of all results, or "" where they have several."""
        words = {_reduced(node)[0] for node in self.body.results}
        return words.pop() if len(words) == 1 and words <= _COMBINERS.keys() else ""

    def combiner(self, op: Op) -> Combiner | None:
        """Return the combiner of the partial results of an op, or None where these cannot be combined.

        Casts behind what combines have to give the same for parts as for the whole: of sums of floats, those to
        integers do not.
        """
        word = self.word
        for node in self.body.results:
            _, element, casts = _reduced(node)
            try:
                dtype = expression_type(self.body.text, self.body.operands, element, op, self._maps(op))
            except PluginError:
                # Whoever builds an element gets the error.
                return None
            types = (BOOLEAN if word in ("any", "all") else dtype, *casts)
            # Partial sums of 8 bits would be rounded to what is left of them.
            is_coarse = word in ("sum", "prod") and any(item in BYTES for item in types)
            if not dtype or is_coarse or not all(_may_cast_later(word, *step) for step in pairwise(types)):
                return None
        return _COMBINERS.get(word)

    def counts_padding(self, op: Op) -> str:
        """Return the first result that elements beyond the end change although operands are neutral there, or "".

        For ``sum(x * w)`` they are zeros; for ``sum(exp(x))`` they count one each.
        """
        maps = self._maps(op)
        symbols = {item for map_ in maps for item in _symbols(map_)}
        masked = [self._masked(op, variable, maps) for variable in symbols]
        for node in self.body.results if self.word else ():
            if not all(_keeps_neutral(_reduced(node), operands) for operands in masked):
                return ast.unparse(node)
        return ""

    def _maps(self, op: Op) -> Sequence[IndexingMap]:
        maps = None if self.indexing is None else self.indexing(op)
        return () if maps is None else maps.output_to_input

    def _masked(self, op: Op, variable: Variable, maps: Sequence[IndexingMap]) -> Mapping[str, str]:
        """Return the element types of the operands that a symbol indexes, by their names."""
        pairs = zip(self.body.operands, op.operands, maps, strict=False)
        return {name: element_type(value) for name, value, map_ in pairs if variable in _symbols(map_)}


def _symbols(map_: IndexingMap) -> set[Variable]:
    variables: set[Variable] = set().union(*map(variables_of, map_.results))
    return {item for item in variables if item.kind is VariableKind.RANGE}


def _reduced(node: ast.expr) -> tuple[str, ast.expr, tuple[str, ...]]:
    """Return the function by which an expression combines elements, or "", these, and the casts behind it, in order."""
    name = getattr(node.func, "id", "") if isinstance(node, ast.Call) and len(node.args) == 1 else ""
    if not isinstance(node, ast.Call) or not name or isinstance(node.args[0], ast.Starred):
        return "", node, ()
    if name not in CASTS:
        return name, node.args[0], ()
    word, element, casts = _reduced(node.args[0])
    return word, element, (*casts, name)


def _may_cast_later(word: str, before: str, after: str) -> bool:
    """Return whether a cast commutes with the combiner."""
    source, target = (Term(dtype, value=object()) for dtype in (before, after))  # type: ignore[arg-type]
    if before == after or (source.is_float and target.is_float):
        return True
    if source.is_boolean:
        return word in ("any", "all") and target.is_integer
    if not source.is_integer or target.is_boolean:
        return False
    if word in ("sum", "prod"):
        return target.is_integer and target.bits <= source.bits
    return _is_monotone(source, target)


def _is_monotone(source: Term, target: Term) -> bool:
    """Return whether a cast of integers keeps their order."""
    if target.is_float or (source.is_unsigned == target.is_unsigned and target.bits >= source.bits):
        return True
    return source.is_unsigned and target.is_integer and target.bits > source.bits


def _keeps_neutral(reduced: tuple[str, ast.expr, tuple[str, ...]], masked: Mapping[str, str]) -> bool:
    """Return whether the expression is neutral where the masked operands are neutral."""
    word, element, _ = reduced
    if word == "sum":
        return _is_zero(element, masked)
    casts = []
    while isinstance(element, ast.Call) and getattr(element.func, "id", "") in CASTS and len(element.args) == 1:
        casts.append(element.func.id)  # type: ignore[attr-defined]
        (element,) = element.args
    if not isinstance(element, ast.Name) or element.id not in masked:
        return False
    types = (masked[element.id], *reversed(casts))
    return all(_may_cast_later(word, *step) for step in pairwise(types))


def _is_zero(node: ast.expr, masked: Collection[str]) -> bool:
    """Return whether an expression is zero where the masked operands are."""
    match node:
        case ast.Name():
            return node.id in masked
        case ast.Constant():
            return node.value == 0
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _is_zero(node.operand, masked)
        case ast.BinOp(op=ast.Mult() | ast.Div(), right=ast.Constant(value=int() | float() as number)):
            return 0 < abs(number) < inf and _is_zero(node.left, masked)
        case ast.BinOp(op=ast.Mult(), left=ast.Constant(value=int() | float() as number)):
            return abs(number) < inf and _is_zero(node.right, masked)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
            return _is_zero(node.left, masked) and _is_zero(node.right, masked)
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int() | float() as number)):
            return number > 0 and _is_zero(node.left, masked)
        case ast.Compare(ops=[ast.Gt() | ast.Lt() | ast.NotEq()]):
            return all(_is_zero(side, masked) for side in (node.left, *node.comparators))
        case ast.IfExp():
            return _is_zero(node.body, masked) and _is_zero(node.orelse, masked)
        case ast.Call(func=ast.Name(id="select"), args=[_, then, otherwise]):
            return _is_zero(then, masked) and _is_zero(otherwise, masked)
        case ast.Call(func=ast.Name(id=name)):
            is_kept = name in _KEEP_ZERO or name in CASTS
            return is_kept and all(_is_zero(argument, masked) for argument in node.args)
    return False
