"""Factors along which the domain of an indexing map says where an element is, so that a shard would mean others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.indexing import Expression, IndexingMap, Interval, Variable, VariableKind, simplify
from shardy_py.indexing.expressions import variables_of
from shardy_py.sharding.derivation.dim_index import DigitIndex, dim_index
from shardy_py.sharding.rule import DimMapping, OpShardingRule
from shardy_py.sharding.rule_builder import Shape


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
    found: set[int] = set()
    written = rule.result_mappings[0]
    for number, map_ in enumerate(maps):
        read = rule.operand_mappings[number]
        for dim, (bound, size) in enumerate(zip(map_.dims, result, strict=True)):
            if not _covers(bound.interval, size):
                found.update(written[dim])
        for dim, (index, size) in enumerate(zip(map_.results, operands[number], strict=True)):
            if not _covers(_symbol_range(map_, index, size), size):
                found.update(read[dim])
        for expression, _ in simplify(map_).constraints if map_.constraints else ():
            found.update(_constrained(rule, map_, expression, read))
    return found


def _symbol_range(map_: IndexingMap, index: Expression, size: int) -> Interval:
    """Return the values of an index that is a symbol alone; all that there are for another one."""
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
