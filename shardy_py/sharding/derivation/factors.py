"""Factors of loops with their kinds, and the factors that the domain of an indexing map restricts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from math import prod

from shardy_py.indexing import Expression, IndexingMap, Interval, Variable, VariableKind, simplify
from shardy_py.indexing.expressions import variables_of
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.derivation.loops import (
    DigitIndex,
    DimIndex,
    LinearIndex,
    LoopAccess,
    OpaqueIndex,
    all_dims,
    cuts,
    dim_index,
    misaligned,
)
from shardy_py.sharding.rule import DimMapping, FactorKind, OpShardingRule, TensorMapping
from shardy_py.sharding.rule_builder import Shape


class LoopFactors:
    """The factors of every loop, one per digit, and their kinds.

    Args:
        sizes: The number of iterations of every loop.
        accesses: The access of the loops to every tensor.
        reduced: Whether a loop is a reduction, per loop.
        combiner: How the iterations of reductions combine; None where they do not.
    """

    def __init__(
        self, sizes: Sequence[int], accesses: Sequence[LoopAccess], reduced: Sequence[bool], combiner: Combiner | None
    ) -> None:
        dims = all_dims(accesses)
        self._sizes = sizes
        self._accesses = accesses
        self._cuts = [cuts(loop, size, dims) for loop, size in enumerate(sizes)]
        self._factor_sizes: list[int] = []
        self._factors: list[DimMapping] = [
            tuple(self._new_factor(end // start) for start, end in reversed([*pairwise(ends)])) for ends in self._cuts
        ]
        self._is_reduced = reduced
        self._combiner = combiner
        reduced_kind = FactorKind.NEED_REPLICATION if combiner is None else FactorKind.REDUCTION
        self._kinds = [reduced_kind if is_reduced else FactorKind.PASS_THROUGH for is_reduced in reduced]
        for index, size in dims:
            for loop, kind in self._demands(index, size):
                if kind is FactorKind.NEED_REPLICATION or self._kinds[loop] is FactorKind.PASS_THROUGH:
                    self._kinds[loop] = kind
        self.replicate(loop for loop in misaligned(dims, sizes) if self._kinds[loop] is FactorKind.REDUCTION)

    def replicate(self, loops: Iterator[int] | Collection[int]) -> None:
        """Make loops need replication."""
        for loop in loops:
            if 0 <= loop < len(self._kinds):
                self._kinds[loop] = FactorKind.NEED_REPLICATION

    def rule(self, num_results: int) -> OpShardingRule:
        """Return the rule of the op; dimensions without factors get one of size 1."""
        mappings = self._with_exact_dims([self._mapping(access) for access in self._accesses])
        used = sorted({factor for mapping in mappings for dim in mapping for factor in dim})
        numbers = {factor: number for number, factor in enumerate(used)}
        renamed = [tuple(tuple(numbers[factor] for factor in dim) for dim in mapping) for mapping in mappings]
        first_result = len(mappings) - num_results

        def of_kind(kind: FactorKind) -> tuple[int, ...]:
            factors = (
                factor
                for loop, loop_kind in enumerate(self._kinds)
                if loop_kind is kind
                for factor in self._factors[loop]
            )
            return tuple(sorted(numbers[factor] for factor in factors if factor in numbers))

        reduced = of_kind(FactorKind.REDUCTION)
        combiners: tuple[tuple[int, Combiner], ...] = ()
        if self._combiner is not None and self._combiner is not Combiner.ADD:
            combiners = tuple((factor, self._combiner) for factor in reduced)
        return OpShardingRule(
            factor_sizes=tuple(self._factor_sizes[factor] for factor in used),
            operand_mappings=tuple(renamed[:first_result]),
            result_mappings=tuple(renamed[first_result:]),
            reduction_factors=reduced,
            need_replication_factors=of_kind(FactorKind.NEED_REPLICATION),
            permutation_factors=of_kind(FactorKind.PERMUTATION),
            combiners=combiners,
        )

    def _with_exact_dims(self, mappings: Sequence[TensorMapping]) -> list[TensorMapping]:
        """Return mappings without factors that lie on no complete dimension, as these cannot be sharded."""
        pairs = list(zip(mappings, self._accesses, strict=True))
        exact = {
            factor
            for mapping, access in pairs
            for dim, (_, size) in zip(mapping, access.dims, strict=True)
            if prod(self._factor_sizes[item] for item in dim) == size
            for factor in dim
        }
        return [
            tuple(dim if exact.issuperset(dim) else (self._new_factor(1),) for dim in mapping) for mapping, _ in pairs
        ]

    def _new_factor(self, size: int) -> int:
        self._factor_sizes.append(size)
        return len(self._factor_sizes) - 1

    def _mapping(self, access: LoopAccess) -> TensorMapping:
        mapping: list[DimMapping] = []
        taken: set[int] = set()
        for index, size in access.dims:
            factors = self._factors_of(index, size)
            # A tensor has a factor once: of a diagonal, the first dimension is sharded where it is stored. The op
            # needs all of it, since no device has the elements of its part of the second.
            shared = taken.intersection(factors)
            self.replicate(loop for loop, loop_factors in enumerate(self._factors) if shared.intersection(loop_factors))
            if not factors or shared:
                factors = (self._new_factor(1),)
            taken.update(factors)
            mapping.append(factors)
        return tuple(mapping)

    def _factors_of(self, index: DimIndex, size: int) -> DimMapping:
        """Return the factors of a dimension, major first; () where there are none."""
        if isinstance(index, DigitIndex):
            return self._factors_of_digit(index, size)
        if not isinstance(index, LinearIndex):
            return ()
        if len(index.terms) == 1:
            return self._factors[index.terms[0][0]]
        if self._is_dense(index, size):
            ordered = sorted(index.terms, key=lambda term: -term[1])
            return tuple(factor for loop, _ in ordered for factor in self._factors[loop])
        moving = self._moving(index)
        return () if moving is None else self._factors[moving]

    def _factors_of_digit(self, digit: DigitIndex, size: int) -> DimMapping:
        """Return the factors of a loop between two cuts."""
        loop_cuts = self._cuts[digit.loop]
        end = self._sizes[digit.loop] if digit.end is None else digit.end
        if digit.divisor not in loop_cuts or end not in loop_cuts:
            return ()
        last = len(loop_cuts) - 1
        factors = self._factors[digit.loop][last - loop_cuts.index(end) : last - loop_cuts.index(digit.divisor)]
        return factors if prod(self._factor_sizes[factor] for factor in factors) == size else ()

    def _is_dense(self, index: LinearIndex, size: int) -> bool:
        """Return whether loops fill a dimension without gaps and overlaps."""
        inner = 1
        for loop, factor in sorted(index.terms, key=lambda term: (term[1], self._sizes[term[0]])):
            if factor != inner:
                return False
            inner *= self._sizes[loop]
        return bool(index.terms) and index.offset == 0 and inner == size

    def _moving(self, index: LinearIndex) -> int | None:
        """Return the loop that moves a window, if all others of the index run over the window and are reduced."""
        moving = [loop for loop, _ in index.terms if not self._is_reduced[loop]]
        return moving[0] if len(moving) == 1 else None

    def _demands(self, index: DimIndex, size: int) -> Iterator[tuple[int, FactorKind]]:
        """Yield the loops whose kind an index changes, with the new kind."""
        if isinstance(index, OpaqueIndex):
            yield from ((loop, FactorKind.NEED_REPLICATION) for loop in index.loops)
        elif isinstance(index, DigitIndex):
            if not self._factors_of(index, size):
                yield index.loop, FactorKind.NEED_REPLICATION
        elif len(index.terms) == 1:
            ((loop, factor),) = index.terms
            if factor != 1 or index.offset or size != self._sizes[loop]:
                yield loop, FactorKind.PERMUTATION
        elif not self._is_dense(index, size):
            moving = self._moving(index)
            for loop, _ in index.terms:
                yield loop, FactorKind.PERMUTATION if loop == moving else FactorKind.NEED_REPLICATION


def restricted_factors(
    rule: OpShardingRule, maps: Sequence[IndexingMap], operands: Sequence[Shape], result: Shape
) -> set[int]:
    """Return the factors that the domains of maps restrict to a part of a dimension.

    Args:
        rule: The rule that follows from the results of the maps.
        maps: The map of every operand.
        operands: The shapes of the operands.
        result: The shape of the results.
    """
    restricted: set[int] = set()
    written = rule.result_mappings[0]
    for number, map_ in enumerate(maps):
        read = rule.operand_mappings[number]
        for dim, (bound, size) in enumerate(zip(map_.dims, result, strict=True)):
            if not _covers(bound.interval, size):
                restricted.update(written[dim])
        for dim, (index, size) in enumerate(zip(map_.results, operands[number], strict=True)):
            if not _covers(_symbol_range(map_, index, size), size):
                restricted.update(read[dim])
        for expression, _ in simplify(map_).constraints if map_.constraints else ():
            restricted.update(_constrained(rule, map_, expression, read))
    return restricted


def _symbol_range(map_: IndexingMap, index: Expression, size: int) -> Interval:
    """Return the range of an index that is a single symbol; an unbounded range for any other index."""
    if isinstance(index, Variable) and index.kind is VariableKind.RANGE:
        return map_.ranges[index.number].interval
    return Interval(0, size - 1)


def _covers(interval: Interval, size: int) -> bool:
    return interval.lower <= 0 and interval.upper >= size - 1


def _constrained(
    rule: OpShardingRule, map_: IndexingMap, expression: Expression, read: Sequence[DimMapping]
) -> Iterator[int]:
    """Yield the factors on which the value of an expression depends; of a digit only those that it has."""
    written = rule.result_mappings[0]
    index = dim_index(expression)
    if isinstance(index, DigitIndex):
        start = 1
        for factor in reversed(written[index.loop]):
            end = start * rule.factor_sizes[factor]
            if end > index.divisor and (index.end is None or start < index.end):
                yield factor
            start = end
        return
    for variable in variables_of(expression):
        if variable.kind is VariableKind.DIM:
            yield from written[variable.number]
        for dim, result in enumerate(map_.results):
            if variable.kind is VariableKind.RANGE and variable in variables_of(result):
                yield from read[dim]
