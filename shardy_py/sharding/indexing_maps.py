"""Sharding rules from indexing maps: how the loops over an op's elements index its tensors.

Any dialect whose ops say for each tensor which loop indexes which dimension, as MLIR's structured ops do, gets its
rules from `rule_from_indexing_maps`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from math import prod

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.affine import Expression, IndexingMap, Linear, Opaque, Part, parse_indexing_map
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import DimMapping, FactorKind, OpShardingRule, TensorMapping
from shardy_py.sharding.rule_builder import Shape

__all__ = [
    "PARALLEL",
    "REDUCTION",
    "IndexingMap",
    "Linear",
    "Opaque",
    "Part",
    "parse_indexing_map",
    "rule_from_indexing_maps",
]

PARALLEL = "parallel"
REDUCTION = "reduction"


def rule_from_indexing_maps(
    maps: Sequence[IndexingMap],
    shapes: Sequence[Shape],
    *,
    num_results: int,
    iterator_types: Sequence[str] = (),
    combiner: Combiner | None = Combiner.ADD,
    whole: Collection[int] = (),
) -> OpShardingRule | None:
    """Return the rule of an op from its indexing maps.

    Each loop is a factor; one that tensors take apart by ``floordiv`` and ``mod`` has a factor for each digit. A
    dimension indexed by a combination of loops such as ``d0 * 4 + d1`` has their factors, major first, if the loops
    fill it without gaps and overlaps. One that a window slides over, ``d0 * stride + d1`` with ``d1`` reduced, has that
    of the parallel loop, which needs a permutation (neighbours exchange what windows share), while the loop over the
    window needs replication. Loops that run backwards, are shifted or take steps need a permutation, those in any
    other expression replication, and so do reduced loops along which tensors meet at different places. A tensor that
    has a loop in two dimensions is sharded along the first.

    Args:
        maps: One map per operand, then one per result.
        shapes: The sizes, in the same order; () for a scalar.
        num_results: How many of them are results.
        iterator_types: One per loop, ``parallel`` or ``reduction``; all parallel by default.
        combiner: How the iterations of reduction loops combine; None where they do not: these loops need replication.
        whole: Further loops that need replication.

    Returns:
        The rule, or None where no dimension tells the size of a loop.

    Raises:
        RuleError: the maps do not fit the shapes or each other.

    >>> maps = [parse_indexing_map(f"(d0, d1, d2) -> {text}") for text in ("(d0, d2)", "(d2, d1)", "(d0, d1)")]
    >>> kinds = ["parallel", "parallel", "reduction"]
    >>> str(rule_from_indexing_maps(maps, [(8, 4), (4, 16), (8, 16)], num_results=1, iterator_types=kinds))
    '<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>'
    """
    _check(maps, shapes, iterator_types)
    num_loops = max((map_.num_loops for map_ in maps), default=0)
    sizes = _loop_sizes(_pairs(maps, shapes), num_loops)
    if sizes is None:
        return None
    maps = [_without_single_steps(map_, sizes) for map_ in maps]
    derivation = _Derivation(sizes, _pairs(maps, shapes), iterator_types, combiner)
    derivation.replicate(whole)
    return derivation.rule(maps, shapes, num_results)


def _check(maps: Sequence[IndexingMap], shapes: Sequence[Shape], iterator_types: Sequence[str]) -> None:
    if len(maps) != len(shapes):
        raise _unfit(f"there are {len(maps)} maps for {len(shapes)} tensors")
    for number, (map_, shape) in enumerate(zip(maps, shapes, strict=True)):
        if len(map_.results) != len(shape):
            raise _unfit(f"map {number} has {len(map_.results)} results, its tensor has {len(shape)} dimensions")
        if map_.num_loops != maps[0].num_loops:
            raise _unfit(f"map {number} is over {map_.num_loops} loops, map 0 over {maps[0].num_loops}")
    if iterator_types and maps and len(iterator_types) != maps[0].num_loops:
        raise _unfit(f"there are {len(iterator_types)} iterator types for {maps[0].num_loops} loops")


def _unfit(message: str) -> RuleError:
    return RuleError(Diagnostic("indexing-maps", message))


def _pairs(maps: Sequence[IndexingMap], shapes: Sequence[Shape]) -> list[tuple[Expression, int]]:
    """Return every dimension's expression and size."""
    return [
        (expression, size)
        for map_, shape in zip(maps, shapes, strict=True)
        for expression, size in zip(map_.results, shape, strict=True)
    ]


def _loop_sizes(pairs: Iterable[tuple[Expression, int]], num_loops: int) -> tuple[int, ...] | None:
    """Return the number of iterations of every loop, from the dimensions that it indexes alone."""
    sizes: list[int | None] = [None] * num_loops
    quotients: list[tuple[Part, int]] = []
    for expression, size in pairs:
        if isinstance(expression, Part) and expression.modulus is None:
            quotients.append((expression, size))
        elif isinstance(expression, Linear) and len(expression.terms) == 1 and not expression.offset:
            ((dim, factor),) = expression.terms
            if factor == 1:
                sizes[dim] = size if sizes[dim] is None else min(size, sizes[dim])  # type: ignore[type-var]
    for part, size in quotients:
        if sizes[part.dim] is None:
            sizes[part.dim] = size * part.divisor
    return None if None in sizes else tuple(sizes)  # type: ignore[arg-type]


def _without_single_steps(map_: IndexingMap, sizes: Sequence[int]) -> IndexingMap:
    """Return a map that does without the indices of loops with one iteration: these are always 0.

    A loop that indexes a dimension alone stays, but takes no larger steps.
    """

    def strip(expression: Expression) -> Expression:
        if not isinstance(expression, Linear):
            return expression
        if len(expression.terms) == 1:
            ((dim, factor),) = expression.terms
            return Linear(((dim, min(factor, 1) if sizes[dim] == 1 else factor),), expression.offset)
        return Linear(tuple(term for term in expression.terms if sizes[term[0]] != 1), expression.offset)

    return IndexingMap(map_.num_loops, tuple(map(strip, map_.results)))


class _Derivation:
    """The factors of the loops, and what tells their kinds."""

    def __init__(
        self,
        sizes: Sequence[int],
        pairs: Sequence[tuple[Expression, int]],
        iterators: Sequence[str],
        combiner: Combiner | None,
    ) -> None:
        self._sizes = sizes
        self._cuts = [_cuts(loop, size, pairs) for loop, size in enumerate(sizes)]
        self._factors: list[DimMapping] = []
        self.factor_sizes: list[int] = []
        self._is_reduced = [kind == REDUCTION for kind in iterators] or [False] * len(sizes)
        self._combiner = combiner
        reduced_kind = FactorKind.NEED_REPLICATION if combiner is None else FactorKind.REDUCTION
        self._kinds = [reduced_kind if reduced else FactorKind.PASS_THROUGH for reduced in self._is_reduced]
        for cuts in self._cuts:
            self._factors.append(tuple(self._new_factor(end // start) for start, end in reversed([*pairwise(cuts)])))
        for expression, size in pairs:
            for loop, kind in self._demands(expression, size):
                if kind is FactorKind.NEED_REPLICATION or self._kinds[loop] is FactorKind.PASS_THROUGH:
                    self._kinds[loop] = kind
        for loop in _misaligned(pairs, sizes):
            if self._kinds[loop] is FactorKind.REDUCTION:
                self._kinds[loop] = FactorKind.NEED_REPLICATION

    def replicate(self, loops: Collection[int]) -> None:
        """Make loops need replication."""
        for loop in loops:
            if 0 <= loop < len(self._kinds):
                self._kinds[loop] = FactorKind.NEED_REPLICATION

    def rule(self, maps: Sequence[IndexingMap], shapes: Sequence[Shape], num_results: int) -> OpShardingRule:
        """Return the rule; dimensions without factors get one of size 1."""
        mappings = [self._mapping(map_, shape) for map_, shape in zip(maps, shapes, strict=True)]
        used = sorted({factor for mapping in mappings for dim in mapping for factor in dim})
        numbers = {factor: number for number, factor in enumerate(used)}
        renamed = [tuple(tuple(numbers[factor] for factor in dim) for dim in mapping) for mapping in mappings]
        first_result = len(maps) - num_results

        def of_kind(kind: FactorKind) -> tuple[int, ...]:
            factors = (factor for loop, own in enumerate(self._kinds) if own is kind for factor in self._factors[loop])
            return tuple(sorted(numbers[factor] for factor in factors if factor in numbers))

        reduced = of_kind(FactorKind.REDUCTION)
        combiners: tuple[tuple[int, Combiner], ...] = ()
        if self._combiner is not None and self._combiner is not Combiner.ADD:
            combiners = tuple((factor, self._combiner) for factor in reduced)
        return OpShardingRule(
            factor_sizes=tuple(self.factor_sizes[factor] for factor in used),
            operand_mappings=tuple(renamed[:first_result]),
            result_mappings=tuple(renamed[first_result:]),
            reduction_factors=reduced,
            need_replication_factors=of_kind(FactorKind.NEED_REPLICATION),
            permutation_factors=of_kind(FactorKind.PERMUTATION),
            combiners=combiners,
        )

    def _new_factor(self, size: int) -> int:
        self.factor_sizes.append(size)
        return len(self.factor_sizes) - 1

    def _mapping(self, map_: IndexingMap, shape: Shape) -> TensorMapping:
        mapping: list[DimMapping] = []
        taken: set[int] = set()
        for expression, size in zip(map_.results, shape, strict=True):
            factors = self._factors_of(expression, size)
            # A tensor has a factor once: of a diagonal, the first dimension is sharded and the second is whole.
            if not factors or not taken.isdisjoint(factors):
                factors = (self._new_factor(1),)
            taken.update(factors)
            mapping.append(factors)
        return tuple(mapping)

    def _factors_of(self, expression: Expression, size: int) -> DimMapping:
        """Return the factors of a dimension, major first; () where there are none."""
        if isinstance(expression, Part):
            return self._digit(expression, size)
        if not isinstance(expression, Linear):
            return ()
        if len(expression.terms) == 1:
            return self._factors[expression.terms[0][0]]
        if self._is_dense(expression, size):
            ordered = sorted(expression.terms, key=lambda term: -term[1])
            return tuple(factor for dim, _ in ordered for factor in self._factors[dim])
        moving = self._moving(expression)
        return () if moving is None else self._factors[moving]

    def _digit(self, part: Part, size: int) -> DimMapping:
        """Return the factors of a loop between two cuts."""
        cuts = self._cuts[part.dim]
        end = self._sizes[part.dim] if part.end is None else part.end
        if part.divisor not in cuts or end not in cuts:
            return ()
        last = len(cuts) - 1
        factors = self._factors[part.dim][last - cuts.index(end) : last - cuts.index(part.divisor)]
        return factors if prod(self.factor_sizes[factor] for factor in factors) == size else ()

    def _is_dense(self, expression: Linear, size: int) -> bool:
        """Return whether loops fill a dimension without gaps and overlaps."""
        inner = 1
        for dim, factor in sorted(expression.terms, key=lambda term: (term[1], self._sizes[term[0]])):
            if factor != inner:
                return False
            inner *= self._sizes[dim]
        return bool(expression.terms) and expression.offset == 0 and inner == size

    def _moving(self, expression: Linear) -> int | None:
        """Return the loop that moves a window, if all others of the expression run over the window and are reduced."""
        moving = [dim for dim, _ in expression.terms if not self._is_reduced[dim]]
        return moving[0] if len(moving) == 1 else None

    def _demands(self, expression: Expression, size: int) -> Iterator[tuple[int, FactorKind]]:
        """Yield the loops that an expression makes more expensive, and what they need."""
        if isinstance(expression, Opaque):
            yield from ((dim, FactorKind.NEED_REPLICATION) for dim in expression.dims)
        elif isinstance(expression, Part):
            if not self._factors_of(expression, size):
                yield expression.dim, FactorKind.NEED_REPLICATION
        elif len(expression.terms) == 1:
            ((dim, factor),) = expression.terms
            if factor != 1 or expression.offset or size != self._sizes[dim]:
                yield dim, FactorKind.PERMUTATION
        elif not self._is_dense(expression, size):
            moving = self._moving(expression)
            for dim, _ in expression.terms:
                yield dim, FactorKind.PERMUTATION if dim == moving else FactorKind.NEED_REPLICATION


def _misaligned(pairs: Iterable[tuple[Expression, int]], sizes: Sequence[int]) -> list[int]:
    """Return the loops whose dimensions meet at different places, as in the sum of ``x[d0] * y[7 - d0]``.

    Such a sum is not that of the sums over shards. The digits of a loop lie where the whole loop would.
    """
    ways: list[set[tuple[int, int, int]]] = [set() for _ in sizes]
    for expression, size in pairs:
        if isinstance(expression, Part):
            ways[expression.dim].add((1, 0, sizes[expression.dim]))
        elif isinstance(expression, Linear) and len(expression.terms) == 1:
            ((dim, factor),) = expression.terms
            ways[dim].add((factor, expression.offset, size))
    return [loop for loop, found in enumerate(ways) if len(found) > 1]


def _cuts(loop: int, size: int, pairs: Iterable[tuple[Expression, int]]) -> tuple[int, ...]:
    """Return where the digits of a loop begin and end, from 1 to its size.

    Where one of them does not divide the next, the loop cannot be taken apart: it has only the two ends.
    """
    if size < 2:
        return (1, size)
    found = {1, size}
    for expression, _ in pairs:
        if isinstance(expression, Part) and expression.dim == loop:
            found |= {expression.divisor, expression.end or size}
    cuts = sorted(found)
    is_chain = all(end % start == 0 for start, end in pairwise(cuts)) and cuts[-1] == size
    return tuple(cuts) if is_chain else (1, size)
