"""The axes along which an op should compute, one list per factor, so that as little as possible is resharded.

The choice is greedy: the axes of the largest tensors win, one factor at a time.

Mirrors explicit_reshards_util.cc::findCommonAxes and explicit_reshards_util.cc::FactorAxesCandidateBag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, axes_size
from shardy_py.sharding.axis_lists import is_prefix, is_strict_prefix, list_order_key, truncate_without_overlap
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes
from shardy_py.values import define


def find_common_axes(projection: OpProjection, tensor_sizes: Sequence[int]) -> list[Axes]:
    """Return the axes of every factor.

    Args:
        projection: The factor shardings; left as they are.
        tensor_sizes: The number of elements of every tensor; what is large should stay where it is.
    """
    compatible = compatible_axes(projection)
    if compatible:
        return compatible
    rule = projection.rule
    tensors = non_scalar_tensors(rule)
    if len(tensors) == 2 and not rule.need_replication_factors and not rule.has_compound_dims:
        return _axes_of_preferred_tensor(projection, tensors, tensor_sizes)

    axes = greedy_axes(projection, tensor_sizes)
    for factor in rule.need_replication_factors:
        freed, axes[factor] = axes[factor], ()
        if freed and is_in_all_non_scalar_tensors(rule, factor):
            _distribute_to_batching_factors(freed, rule, projection.mesh, axes)
    return axes


def non_scalar_tensors(rule: OpShardingRule) -> list[int]:
    """Return the numbers of the tensors that have a dimension."""
    return [number for number, mapping in enumerate(rule.mappings) if mapping]


def is_in_all_non_scalar_tensors(rule: OpShardingRule, factor: int) -> bool:
    """Return whether every tensor that has a dimension has the factor."""
    return all(any(factor in dim for dim in mapping) for mapping in rule.mappings if mapping)


def _axes_of_preferred_tensor(
    projection: OpProjection, tensors: Sequence[int], tensor_sizes: Sequence[int]
) -> list[Axes]:
    """Return the axes of one of two tensors, so that only the other one is resharded.

    Factors that only the other one has keep what of their axes is still free.

    Mirrors explicit_reshards_util.cc::findCommonAxesOnUnaryOperation.
    """
    preferred, other = tensors
    if _preference(projection, preferred, tensor_sizes) < _preference(projection, other, tensor_sizes):
        preferred, other = other, preferred
    result: list[Axes] = [()] * projection.rule.num_factors
    used: Axes = ()
    for factor, entry in projection.tensors[preferred].factors.items():
        result[factor] = entry.axes
        used += entry.axes
    for factor, entry in projection.tensors[other].factors.items():
        if factor not in projection.tensors[preferred].factors:
            result[factor] = truncate_without_overlap(entry.axes, used)
    return result


def _preference(projection: OpProjection, tensor: int, tensor_sizes: Sequence[int]) -> tuple[bool, int, int]:
    """Return the sort key: no sharded permutation factors, then the size, then the number of parts.

    Mirrors explicit_reshards_util.cc::sortedTensorIndicesOnUnaryOperation.
    """
    factors = projection.tensors[tensor].factors
    permuted = any(
        entry.axes and projection.rule.kind(factor) is FactorKind.PERMUTATION for factor, entry in factors.items()
    )
    return (not permuted, tensor_sizes[tensor], projection.sharding_size(tensor))


def _distribute_to_batching_factors(freed: Axes, rule: OpShardingRule, mesh: Mesh, axes: list[Axes]) -> None:
    """Give axes that a replicated factor may not keep to batching factors, as long as they divide evenly.

    Mirrors explicit_reshards_util.cc::distributeAxisRefsToBatchingFactors.
    """
    rest = list(freed)
    for factor in range(rule.num_factors):
        if not rest:
            return
        if rule.is_batching(factor):
            axes[factor] = _fill(axes[factor], rest, rule.factor_sizes[factor], mesh)


def _fill(axes: Axes, rest: list[AxisRef], factor_size: int, mesh: Mesh) -> Axes:
    """Return the axes of a factor with as many of ``rest`` as fit behind them; they are taken off ``rest``."""
    parts = axes_size(axes, mesh)
    if factor_size == 0 or factor_size % parts:
        return axes
    capacity = factor_size // parts
    result = list(axes)
    while rest and capacity % rest[0].size(mesh) == 0:
        axis = rest.pop(0)
        add_axis_or_merge(result, axis, mesh)
        capacity //= axis.size(mesh)
    return tuple(result)


_PRECEDENCE = {
    FactorKind.PASS_THROUGH: 3,
    FactorKind.REDUCTION: 2,
    FactorKind.PERMUTATION: 1,
    FactorKind.NEED_REPLICATION: 0,
}


@define(eq=False)
class _Candidate:
    """Axes that a factor could take.

    Mirrors explicit_reshards_util.cc::FactorAxesCandidate.

    Attributes:
        factor: The factor.
        axes: The axes.
        precedence: That of the kind of factor.
        source_size: The number of elements of all tensors whose axes along the factor start with these.
        sharding_size: The number of parts that these axes add.
    """

    factor: int
    axes: Axes
    precedence: int
    source_size: int
    sharding_size: int

    def key(self) -> tuple[object, ...]:
        """Return the sort key; the candidate with the largest is taken."""
        return (self.source_size, self.precedence, self.sharding_size, self.factor, list_order_key(self.axes))


def greedy_axes(projection: OpProjection, tensor_sizes: Sequence[int]) -> list[Axes]:
    """Return the axes of every factor: pick the best candidate, drop or shorten those it excludes, and so on.

    Mirrors explicit_reshards_util.cc::findCommonAxesHeuristic.
    """
    rule, mesh = projection.rule, projection.mesh
    assigned: list[Axes] = [()] * rule.num_factors
    candidates = _all_candidates(projection, tensor_sizes)
    waiting_for = _dependencies(rule)
    while True:
        ready = [candidate for candidate in candidates if not waiting_for.get(candidate.factor)]
        if not ready:
            return assigned
        best = max(ready, key=_Candidate.key)
        factor, axes = best.factor, best.axes
        assigned[factor] = axes
        if axes_size(axes, mesh) == rule.factor_sizes[factor]:
            for dependencies in waiting_for.values():
                dependencies.discard(factor)
        candidates = [other for other in candidates if _keep(other, factor, axes, assigned, mesh)]


def _all_candidates(projection: OpProjection, tensor_sizes: Sequence[int]) -> list[_Candidate]:
    """Return a candidate for the axes of every tensor along every factor, and for all whole axes they start with.

    Mirrors explicit_reshards_util.cc::findFactorAxesCandidates.
    """
    rule, mesh = projection.rule, projection.mesh
    by_axes: dict[tuple[int, Axes], _Candidate] = {}
    for factor, axes in _sources(projection):
        precedence = _PRECEDENCE[rule.kind(factor)]
        for length in range(len(axes), 0, -1):
            part = axes[:length]
            if (factor, part) not in by_axes:
                by_axes[factor, part] = _Candidate(factor, part, precedence, 0, axes_size(part, mesh))
    for tensor, size in zip(projection.tensors, tensor_sizes, strict=True):
        for factor, entry in tensor.factors.items():
            for candidate in by_axes.values():
                if candidate.factor == factor and is_prefix(candidate.axes, entry.axes):
                    candidate.source_size += size
    return list(by_axes.values())


def _sources(projection: OpProjection) -> Iterable[tuple[int, Axes]]:
    for tensor in projection.tensors:
        for factor, entry in tensor.factors.items():
            yield factor, entry.axes


def _dependencies(rule: OpShardingRule) -> dict[int, set[int]]:
    """Return for every factor the factors directly before it in a dimension.

    As long as one of them is not fully sharded, sharding the factor would need a strided view.
    """
    result: dict[int, set[int]] = {}
    for mapping in rule.mappings:
        for dim in mapping:
            for before, factor in pairwise(dim):
                result.setdefault(factor, set()).add(before)
    return result


def _keep(candidate: _Candidate, factor: int, axes: Axes, assigned: Sequence[Axes], mesh: Mesh) -> bool:
    """Adapt a candidate to the axes just assigned to a factor; return whether it still adds something."""
    if candidate.factor == factor:
        if not is_strict_prefix(axes, candidate.axes):
            return False
        candidate.sharding_size = axes_size(candidate.axes, mesh) // axes_size(axes, mesh)
        return True
    free = truncate_without_overlap(candidate.axes, axes)
    if free == candidate.axes:
        # The reference counts all parts again here, those that the factor has already among them.
        candidate.sharding_size = axes_size(free, mesh)
        return True
    candidate.axes = free
    assigned_axes = assigned[candidate.factor]
    if free == assigned_axes:
        return False
    candidate.sharding_size = axes_size(free, mesh) // axes_size(assigned_axes, mesh)
    return True
