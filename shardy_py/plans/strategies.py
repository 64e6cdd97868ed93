"""The strategies of a node, as arrays: axes of the mesh on factors of its rule, and where sums go.

A row of an array is a strategy, a column an axis; what is on no factor, or shards no dimension, is -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from attrs import evolve

from shardy_py.plans.graph import Dims, Placement, PlanGraph, PlanNode
from shardy_py.plans.prices import NONE, Prices
from shardy_py.plans.solve import numpy
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import define, frozen


@frozen
class PlanStrategy:
    """One way to compute a node.

    Args:
        factors: For each axis the factor that it is on, or None; of an argument the dimension.
        out: The placement of the results.
    """

    factors: tuple[int | None, ...]
    out: Placement


@define(eq=False)
class Strategies:
    """The strategies of a node.

    Attributes:
        factors: The factors that axes are on; of an argument the dimensions.
        bases: The placements of the results before sums are scattered.
        outs: The placements of the results.
        is_summed: Whether partial results are summed over an axis.
        seconds: The time of the kernel and of the sums.
        latency: The latency of sums that the compiler may combine with others, by strict prices.
        counted: The part of it that is in `seconds`.
    """

    factors: Any
    bases: Any
    outs: Any
    is_summed: Any
    seconds: Any
    latency: Any
    counted: Any

    @classmethod
    def of(cls, graph: PlanGraph, node: PlanNode, prices: Prices) -> Strategies:
        """Return all strategies of a node, without prices."""
        if node.op is None or node.rule is None:
            shape = graph.shape(node.results[0])
            outs = _rows([NONE, *range(len(shape))], len(prices.axes))
            outs = outs[prices.divides(shape, outs)]
            factors, bases, is_summed = outs, outs, numpy().zeros(outs.shape, dtype=bool)
        else:
            factors, bases, outs, is_summed = _of_op(graph, node, node.rule, prices)
        free = numpy().zeros(len(outs))
        return cls(factors, bases, outs, is_summed, free, free, free)

    def priced(self, graph: PlanGraph, node: PlanNode, prices: Prices) -> Strategies:
        """Return the strategies with prices."""
        if node.op is None or node.rule is None:
            return self
        kernel = prices.kernel_seconds(graph, node, self.factors, self.bases)
        is_scattered = self.is_summed & (self.outs != NONE)
        size = graph.bytes(node.results[0])
        sums = prices.reduction_seconds(size, self.bases, self.factors, self.is_summed, is_scattered)
        seconds, latency, counted = (part * prices.runs(graph, node) for part in sums)
        return evolve(self, seconds=kernel + seconds, latency=latency, counted=counted)

    def take(self, numbers: Any) -> Strategies:
        """Return the strategies of some numbers, or those for which a condition holds."""
        return Strategies(
            self.factors[numbers],
            self.bases[numbers],
            self.outs[numbers],
            self.is_summed[numbers],
            self.seconds[numbers],
            self.latency[numbers],
            self.counted[numbers],
        )

    def __len__(self) -> int:
        return len(self.outs)

    def __getitem__(self, number: int) -> PlanStrategy:
        return PlanStrategy(placement_of(self.factors[number]), placement_of(self.outs[number]))

    def __iter__(self) -> Iterator[PlanStrategy]:
        return map(self.__getitem__, range(len(self)))


def placement_of(row: Any) -> Placement:
    """Return a row as a placement."""
    return tuple(None if dim == NONE else int(dim) for dim in row)


def row_of(placement: Placement) -> Any:
    """Return a placement as a row."""
    return numpy().array([NONE if dim is None else dim for dim in placement])


def numbers_of(placements: Any, rank: int) -> Any:
    """Return the number of each placement among all of a rank; that which shards nothing is number 0."""
    numbers = numpy().zeros(len(placements), dtype=numpy().int64)
    for axis in range(placements.shape[1]):
        numbers = numbers * (rank + 1) + placements[:, axis] + 1
    return numbers


def needed(rule: OpShardingRule, operand: int, factors: Placement) -> Placement:
    """Return the placement that an operand needs where axes are on factors."""
    dims = _dims_of_factors(rule.operand_mappings[operand])
    return tuple(None if factor is None else dims.get(factor) for factor in factors)


def all_needed(rule: OpShardingRule, operand: int, factors: Any) -> Any:
    """Return the placements that an operand needs by each row of factors."""
    return _mapped(factors, _dims_of_factors(rule.operand_mappings[operand]), len(rule.factor_sizes))


def through(placement: Placement, dims: Dims) -> Placement:
    """Return the placement of a view on the dimensions of its root."""
    return tuple(None if dim is None else dims[dim] for dim in placement)


def all_through(placements: Any, dims: Dims) -> Any:
    """Return the placements of a view on the dimensions of its root."""
    return _mapped(placements, {dim: root for dim, root in enumerate(dims) if root is not None}, len(dims))


def seen_by(placement: Placement, dims: Dims) -> Placement:
    """Return the placement of a root on the dimensions of a view."""
    inverse = {dim: number for number, dim in enumerate(dims) if dim is not None}
    return tuple(None if dim is None else inverse.get(dim) for dim in placement)


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


def _of_op(graph: PlanGraph, node: PlanNode, rule: OpShardingRule, prices: Prices) -> tuple[Any, Any, Any, Any]:
    """Return factors, placements before sums are scattered, placements, and what is summed."""
    np = numpy()
    dims_of_results = [
        _dims_of_factors(mapping) for mapping, slot in zip(rule.result_mappings, node.results, strict=True) if slot >= 0
    ]
    dims, shape = dims_of_results[0], graph.shape(node.results[0])
    usable = [
        factor
        for factor in usable_factors(graph, node)
        if all(dim_of.get(factor) == dims.get(factor) for dim_of in dims_of_results)
    ]
    factors = _rows([NONE, *usable], len(prices.axes))
    factors = factors[prices.divides(rule.factor_sizes, factors)]
    bases = _mapped(factors, dims, len(rule.factor_sizes))
    is_summed = np.isin(factors, [factor for factor in rule.reduction_factors if factor not in dims])
    numbers, outs = _with_targets(bases, is_summed, [NONE, *range(len(shape))])
    factors, bases, is_summed = factors[numbers], bases[numbers], is_summed[numbers]
    is_allowed = _nests(bases, outs, is_summed) & prices.divides(shape, outs)
    return factors[is_allowed], bases[is_allowed], outs[is_allowed], is_summed[is_allowed]


def _with_targets(bases: Any, is_summed: Any, targets: Sequence[int]) -> tuple[Any, Any]:
    """Return the number of a row, and its placement, for each combination of dimensions along which sums go."""
    np = numpy()
    numbers, outs = [], []
    for pattern in product((False, True), repeat=bases.shape[1]):
        rows = np.flatnonzero((is_summed == np.array(pattern)).all(axis=1))
        goals = _rows(targets, sum(pattern))
        placements = np.repeat(bases[rows], len(goals), axis=0)
        placements[:, np.flatnonzero(pattern)] = np.tile(goals, (len(rows), 1))
        numbers.append(np.repeat(rows, len(goals)))
        outs.append(placements)
    joined = np.concatenate(numbers)
    order = np.argsort(joined, kind="stable")
    return joined[order], np.concatenate(outs)[order]


def _nests(bases: Any, outs: Any, is_summed: Any) -> Any:
    """Return where no sum is scattered over a major axis into a dimension with a minor one: that would not nest."""
    nests = numpy().ones(len(outs), dtype=bool)
    for axis in range(outs.shape[1]):
        is_scattered = is_summed[:, axis] & (outs[:, axis] != NONE)
        for minor in range(axis + 1, outs.shape[1]):
            nests &= ~(is_scattered & (bases[:, minor] == outs[:, axis]))
    return nests


def _rows(values: Sequence[int], count: int) -> Any:
    """Return all combinations of values, one a row; the last one changes first."""
    np = numpy()
    return np.array(list(product(values, repeat=count)), dtype=np.int64).reshape(len(values) ** count, count)


def _dims_of_factors(mapping: Sequence[Sequence[int]]) -> dict[int, int]:
    return {factor: dim for dim, inside in enumerate(mapping) for factor in inside}


def _mapped(rows: Any, numbers: Mapping[int, int], count: int) -> Any:
    """Return rows with each of `count` values replaced by another, or by -1."""
    table = numpy().full(count + 1, NONE)
    for value, number in numbers.items():
        table[value] = number
    return table[rows]
