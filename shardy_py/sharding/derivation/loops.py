"""Loops of an op: the indices of its tensors' dimensions, the sizes of the loops, the places where digits meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from shardy_py.sharding.derivation.dim_index import DigitIndex, DimIndex, LinearIndex
from shardy_py.values import frozen

Dim = tuple[DimIndex, int]
"""A dimension of a tensor: its index and its size."""


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
    found = tuple(size for size in sizes if size is not None)
    return found if len(found) == num_loops else None


def cuts(loop: int, size: int, dims: Iterable[Dim]) -> tuple[int, ...]:
    """Return the places where digits of a loop begin and end, from 1 to its size.

    Where one of them does not divide the next, the loop cannot be taken apart: it has only the two ends.
    """
    if size < 2:
        return (1, size)
    found = {1, size}
    for index, _ in dims:
        if isinstance(index, DigitIndex) and index.loop == loop:
            found |= {index.divisor, index.end or size}
    ordered = sorted(found)
    is_chain = all(end % start == 0 for start, end in pairwise(ordered)) and ordered[-1] == size
    return tuple(ordered) if is_chain else (1, size)


def misaligned(dims: Iterable[Dim], sizes: Sequence[int]) -> list[int]:
    """Return the loops whose dimensions meet at different places, as in the sum of ``x[d0] * y[7 - d0]``.

    Such a sum is not that of the sums over shards. The digits of a loop lie where the whole loop would.
    """
    ways: list[set[tuple[int, int, int]]] = [set() for _ in sizes]
    for index, size in dims:
        if isinstance(index, DigitIndex):
            ways[index.loop].add((1, 0, sizes[index.loop]))
        elif isinstance(index, LinearIndex) and len(index.terms) == 1:
            ((loop, factor),) = index.terms
            ways[loop].add((factor, index.offset, size))
    return [loop for loop, found in enumerate(ways) if len(found) > 1]
