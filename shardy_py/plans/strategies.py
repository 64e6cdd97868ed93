"""The strategies of a node: axes of the mesh on factors of its rule, and where sums go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from shardy_py.plans.graph import Dims, Placement, PlanGraph, PlanNode
from shardy_py.plans.prices import Prices
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen


@frozen
class PlanStrategy:
    """One way to compute a node.

    Args:
        factors: For each axis the factor that it is on, or None; of an argument the dimension.
        out: The placement of the results.
        seconds: The time of its kernel and of its sums.
        latency: The latency of sums that the compiler may combine with others, by strict prices.
        counted: The part of it that is in `seconds`.
    """

    factors: tuple[int | None, ...]
    out: Placement
    seconds: float = 0.0
    latency: float = 0.0
    counted: float = 0.0


def strategies(graph: PlanGraph, node: PlanNode, prices: Prices) -> tuple[PlanStrategy, ...]:
    """Return all strategies of a node."""
    if node.op is None or node.rule is None:
        return tuple(
            PlanStrategy(placement, placement) for placement in placements(graph.shape(node.results[0]), prices)
        )
    return tuple(_of_op(graph, node, node.rule, prices))


def placements(shape: tuple[int, ...], prices: Prices) -> Iterator[Placement]:
    """Yield the placements of a shape whose sizes divide."""
    for placement in product((None, *range(len(shape))), repeat=len(prices.axes)):
        if _divides(shape, placement, prices):
            yield placement


def needed(rule: OpShardingRule, operand: int, factors: tuple[int | None, ...]) -> Placement:
    """Return the placement that an operand needs where axes are on factors."""
    dims = {factor: dim for dim, inside in enumerate(rule.operand_mappings[operand]) for factor in inside}
    return tuple(None if factor is None else dims.get(factor) for factor in factors)


def through(placement: Placement, dims: Dims) -> Placement:
    """Return the placement of a view on the dimensions of its root."""
    return tuple(None if dim is None else dims[dim] for dim in placement)


def seen_by(placement: Placement, dims: Dims) -> Placement:
    """Return the placement of a root on the dimensions of a view."""
    inverse = {dim: number for number, dim in enumerate(dims) if dim is not None}
    return tuple(None if dim is None else inverse.get(dim) for dim in placement)


def _divides(shape: tuple[int, ...], placement: Placement, prices: Prices) -> bool:
    parts = [1] * len(shape)
    for (_, size), dim in zip(prices.axes, placement, strict=True):
        if dim is not None:
            parts[dim] *= size
    return all(size % count == 0 for size, count in zip(shape, parts, strict=True))


def _of_op(graph: PlanGraph, node: PlanNode, rule: OpShardingRule, prices: Prices) -> Iterator[PlanStrategy]:
    result_dims = [
        {factor: dim for dim, inside in enumerate(mapping) for factor in inside}
        for mapping, slot in zip(rule.result_mappings, node.results, strict=True)
        if slot >= 0
    ]
    dims, shape = result_dims[0], graph.shape(node.results[0])
    usable = [
        factor
        for factor in usable_factors(graph, node)
        if all(dim_of.get(factor) == dims.get(factor) for dim_of in result_dims)
    ]
    size = graph.bytes(node.results[0])
    for factors in product((None, *usable), repeat=len(prices.axes)):
        if not _divides(rule.factor_sizes, factors, prices):
            continue
        base = tuple(None if factor is None else dims.get(factor) for factor in factors)
        summed = [
            axis
            for axis, factor in enumerate(factors)
            if factor is not None and factor in rule.reduction_factors and factor not in dims
        ]
        kernel = prices.kernel_seconds(graph, node, factors, base)
        for targets in product((None, *range(len(shape))), repeat=len(summed)):
            goal = dict(zip(summed, targets, strict=True))
            out = tuple(goal.get(axis, dim) for axis, dim in enumerate(base))
            # A sum that is scattered over a major axis into a dimension with a minor one would not nest.
            nests = all(
                dim is None or all(base[minor] != dim for minor in range(axis + 1, len(base)))
                for axis, dim in goal.items()
            )
            if nests and _divides(shape, out, prices):
                sums, latency, counted = prices.reduction_seconds(factors, goal, size, base)
                yield PlanStrategy(factors, out, kernel + sums, latency, counted)


def usable_factors(graph: PlanGraph, node: PlanNode) -> list[int]:
    """Return the factors that an axis may be on: the major one of each dimension, unless it needs communication.

    Those of an argument are its dimensions.
    """
    rule = node.rule
    if rule is None:
        return list(range(len(graph.shape(node.results[0]))))
    mappings = [rule.operand_mappings[number] for number in node.live]
    mappings += [mapping for mapping, slot in zip(rule.result_mappings, node.results, strict=True) if slot >= 0]
    refused = {*rule.need_replication_factors, *rule.permutation_factors}
    used: set[int] = set()
    for mapping in mappings:
        for inside in mapping:
            large = [factor for factor in inside if rule.factor_sizes[factor] > 1]
            refused.update(large[1:])
            used.update(large)
    return sorted(used - refused)
