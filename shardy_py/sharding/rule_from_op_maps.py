"""Sharding rules from the indexing maps of an op's operands: each index of the result is a loop, so is each symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from shardy_py.indexing import Binary, Constant, IndexingMap, Variable, VariableKind
from shardy_py.indexing import Expression as IndexExpression
from shardy_py.indexing.canonical import canonicalize, linear
from shardy_py.indexing.expressions import variables_of
from shardy_py.sharding.affine import Expression, Linear, Opaque, Part, divided_part, reduced_part
from shardy_py.sharding.affine import IndexingMap as LoopMap
from shardy_py.sharding.indexing_maps import PARALLEL, REDUCTION, rule_from_indexing_maps
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import Shape


def rule_from_op_maps(
    maps: Sequence[IndexingMap], operands: Sequence[Shape], results: Sequence[Shape], *, sums: bool = False
) -> OpShardingRule | None:
    """Return the rule of an op from the maps of its operands.

    Args:
        maps: The map of every operand, from the index of the first result.
        operands: The shapes of the operands; () for a scalar.
        results: The shapes of the results; all have the index of the first.
        sums: Whether what range variables run over is added up, so that each shard may add up its own part. Otherwise
            such dimensions need replication.

    Returns:
        The rule; None without operands, where a map is undefined, where results have different shapes, or where
        nothing tells the size of a loop.

    >>> from shardy_py.indexing import op_maps
    >>> maps = [op_maps.transpose((16, 8), [1, 0])]
    >>> str(rule_from_op_maps(maps, [(8, 16)], [(16, 8)]))
    '<([j, i])->([i, j]) {i=16, j=8}>'
    """
    if not maps or not results or len(set(map(tuple, results))) > 1 or any(map_.is_undefined for map_ in maps):
        return None
    rank = len(results[0])
    widest = max((len(map_.ranges) for map_ in maps), default=0)
    loops = {Variable(VariableKind.DIM, number): number for number in range(rank)}
    loops |= {Variable(VariableKind.RANGE, number): rank + number for number in range(widest)}
    count = rank + widest
    read = [LoopMap(count, tuple(loop_expression(result, loops) for result in map_.results)) for map_ in maps]
    written = [LoopMap.of_loops(count, range(rank))] * len(results)
    rule = rule_from_indexing_maps(
        [*read, *written],
        [*operands, *results],
        num_results=len(results),
        iterator_types=[PARALLEL] * rank + [REDUCTION] * widest,
    )
    if rule is None or sums:
        return rule
    replicated = tuple(sorted((*rule.need_replication_factors, *rule.reduction_factors)))
    return evolve(rule, reduction_factors=(), need_replication_factors=replicated)


def loop_expression(expression: IndexExpression, loops: Mapping[Variable, int]) -> Expression:
    """Return an index expression as what sharding factors can stand for.

    Args:
        expression: The expression.
        loops: The loop of every variable; those without one are read at run time.
    """
    expression = canonicalize(expression)
    sum_ = linear(expression)
    if all(term in loops for term in sum_.terms):
        return Linear(tuple(sorted((loops[term], factor) for term, factor in sum_.terms.items())), sum_.offset)  # type: ignore[index]
    part = _digit(expression, loops)
    if part is not None:
        return part
    return Opaque(tuple(sorted(loops[variable] for variable in variables_of(expression) if variable in loops)))


def _digit(expression: IndexExpression, loops: Mapping[Variable, int]) -> Part | None:
    """Return ``(loop / a) mod b``, in any nesting, as a digit, or None."""
    if isinstance(expression, Variable):
        return Part(loops[expression], 1) if expression in loops else None
    if not isinstance(expression, Binary) or expression.op not in ("/", "mod"):
        return None
    if not isinstance(expression.right, Constant) or expression.right.value <= 0:
        return None
    inner = _digit(expression.left, loops)
    if inner is None:
        return None
    change = divided_part if expression.op == "/" else reduced_part
    return change(inner, expression.right.value)
