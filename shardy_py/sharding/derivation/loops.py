"""Loops of an op: how they index the dimensions of its tensors, their sizes, and the digits into which they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

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
"""The index of one dimension of a tensor."""

Dim = tuple[DimIndex, int]
"""A dimension of a tensor: its index and its size."""


def dim_index(expression: Expression) -> DimIndex:
    """Return an expression as the index of a dimension; its dimensions ``d0``, ``d1``... are the loops.

    Symbols and run-time variables are not loops: an expression with one of them is opaque.

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
    """Return a digit divided by a number, or None where that is not a digit."""
    if digit.modulus is None:
        return evolve(digit, divisor=digit.divisor * by)
    return None if digit.modulus % by else DigitIndex(digit.loop, digit.divisor * by, digit.modulus // by)


def _reduced(digit: DigitIndex, by: int) -> DigitIndex | None:
    """Return a digit modulo a number, or None where that is not a digit."""
    if digit.modulus is not None and digit.modulus % by:
        return None
    return evolve(digit, modulus=by)


@frozen
class LoopAccess:
    """Access of loops to one tensor: its dimensions with their indices and sizes."""

    dims: tuple[Dim, ...]

    def without_single_steps(self, sizes: Sequence[int]) -> LoopAccess:
        """Return the access without the indices of loops with one iteration: these are always 0.

        A loop that indexes a dimension alone stays, but takes no larger steps.
        """
        return LoopAccess(tuple((_without_single_steps(index, sizes), size) for index, size in self.dims))


def _without_single_steps(index: DimIndex, sizes: Sequence[int]) -> DimIndex:
    if not isinstance(index, LinearIndex):
        return index
    if len(index.terms) == 1:
        ((loop, factor),) = index.terms
        return LinearIndex(((loop, min(factor, 1) if sizes[loop] == 1 else factor),), index.offset)
    return LinearIndex(tuple(term for term in index.terms if sizes[term[0]] != 1), index.offset)


def all_dims(accesses: Iterable[LoopAccess]) -> list[Dim]:
    """Return the dimensions of all tensors."""
    return [dim for access in accesses for dim in access.dims]


def loop_sizes(dims: Iterable[Dim], num_loops: int) -> tuple[int, ...] | None:
    """Return the number of iterations of every loop, from the dimensions that it indexes alone.

    Returns:
        The sizes; None where no dimension tells one of them.
    """
    sizes: list[int | None] = [None] * num_loops
    quotients: list[tuple[DigitIndex, int]] = []
    for index, size in dims:
        if isinstance(index, DigitIndex) and index.modulus is None:
            quotients.append((index, size))
        elif isinstance(index, LinearIndex) and len(index.terms) == 1 and not index.offset:
            ((loop, factor),) = index.terms
            known = sizes[loop]
            if factor == 1:
                sizes[loop] = size if known is None else min(size, known)
    for digit, size in quotients:
        if sizes[digit.loop] is None:
            sizes[digit.loop] = size * digit.divisor
    known_sizes = tuple(size for size in sizes if size is not None)
    return known_sizes if len(known_sizes) == num_loops else None


def cuts(loop: int, size: int, dims: Iterable[Dim]) -> tuple[int, ...]:
    """Return the strides at which digits of a loop begin and end, from 1 to its size.

    Where one of them does not divide the next, the loop cannot be taken apart: it has only the two ends.
    """
    if size < 2:
        return (1, size)
    ends = {1, size}
    for index, _ in dims:
        if isinstance(index, DigitIndex) and index.loop == loop:
            ends |= {index.divisor, index.end or size}
    ordered = sorted(ends)
    is_chain = all(end % start == 0 for start, end in pairwise(ordered)) and ordered[-1] == size
    return tuple(ordered) if is_chain else (1, size)


def misaligned(dims: Iterable[Dim], sizes: Sequence[int]) -> list[int]:
    """Return the loops that index dimensions in different ways, as in the sum of ``x[d0] * y[7 - d0]``.

    Such a sum is not that of the sums over shards. The digits of a loop lie where the whole loop would.
    """
    ways: list[set[tuple[int, int, int]]] = [set() for _ in sizes]
    for index, size in dims:
        if isinstance(index, DigitIndex):
            ways[index.loop].add((1, 0, sizes[index.loop]))
        elif isinstance(index, LinearIndex) and len(index.terms) == 1:
            ((loop, factor),) = index.terms
            ways[loop].add((factor, index.offset, size))
    return [loop for loop, accesses in enumerate(ways) if len(accesses) > 1]
