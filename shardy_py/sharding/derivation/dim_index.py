"""Index of one dimension by loops: linear, a digit, or opaque to factors."""

from __future__ import annotations

from attrs import evolve

from shardy_py.indexing.canonical import canonicalize, linear
from shardy_py.indexing.expressions import Binary, Constant, Expression, Variable, VariableKind, variables_of
from shardy_py.values import frozen


@frozen
class LinearIndex:
    """A sum of loop indices, each times a number, and an offset: ``d0 * 4 + d1``, ``-d0 + 7``, ``0``."""

    terms: tuple[tuple[int, int], ...]
    offset: int = 0


@frozen
class DigitIndex:
    """A digit of one loop index: ``d0 floordiv 4``, ``d0 mod 4``, ``(d0 floordiv 4) mod 8``.

    Args:
        loop: The loop.
        divisor: The divisor of the index; 1 for a remainder alone.
        modulus: The number of values after which the quotient begins again; None for a quotient alone.
    """

    loop: int
    divisor: int
    modulus: int | None = None

    @property
    def end(self) -> int | None:
        """The number of iterations after which the digit begins again; None if it never does."""
        return None if self.modulus is None else self.divisor * self.modulus


@frozen
class OpaqueIndex:
    """An index over some loops that no factors represent."""

    loops: tuple[int, ...]


DimIndex = LinearIndex | DigitIndex | OpaqueIndex


def dim_index(expression: Expression) -> DimIndex:
    """Return an expression as the index of a dimension; its dimensions ``d0``, ``d1``... are the loops.

    Symbols and run-time variables are no loops: an expression with one of them is opaque.

    >>> from shardy_py.indexing import AffineMap
    >>> [str(dim_index(result)) for result in AffineMap.parse("(d0, d1) -> (d0 * 4 + d1, d0 mod 8)").results]
    ['LinearIndex(terms=((0, 4), (1, 1)), offset=0)', 'DigitIndex(loop=0, divisor=1, modulus=8)']
    """
    expression = canonicalize(expression)
    sum_ = linear(expression)
    if all(map(_is_loop, sum_.terms)):
        terms = sorted((term.number, factor) for term, factor in sum_.terms.items() if isinstance(term, Variable))
        return LinearIndex(tuple(terms), sum_.offset)
    digit = _digit(expression)
    if digit is not None:
        return digit
    return OpaqueIndex(tuple(sorted(variable.number for variable in variables_of(expression) if _is_loop(variable))))


def _is_loop(expression: Expression) -> bool:
    return isinstance(expression, Variable) and expression.kind is VariableKind.DIM


def _digit(expression: Expression) -> DigitIndex | None:
    """Return quotients and remainders of one loop, in any nesting, as a digit, or None."""
    if isinstance(expression, Variable):
        return DigitIndex(expression.number, 1) if _is_loop(expression) else None
    if not isinstance(expression, Binary) or expression.op not in ("/", "mod"):
        return None
    if not isinstance(expression.right, Constant) or expression.right.value <= 0:
        return None
    inner = _digit(expression.left)
    if inner is None:
        return None
    return (_divided if expression.op == "/" else _reduced)(inner, expression.right.value)


def _divided(digit: DigitIndex, by: int) -> DigitIndex | None:
    """Return a digit divided by a number, or None where that is no digit."""
    if digit.modulus is None:
        return evolve(digit, divisor=digit.divisor * by)
    return None if digit.modulus % by else DigitIndex(digit.loop, digit.divisor * by, digit.modulus // by)


def _reduced(digit: DigitIndex, by: int) -> DigitIndex | None:
    """Return a digit modulo a number, or None where that is no digit."""
    if digit.modulus is not None and digit.modulus % by:
        return None
    return evolve(digit, modulus=by)
