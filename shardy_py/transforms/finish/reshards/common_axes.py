"""The axes along which an op should compute, one list per factor, so that as little as possible is resharded.

Mirrors explicit_reshards_util.cc::findCommonAxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, axes_size
from shardy_py.sharding.axis_lists import truncate_without_overlap
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes


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
    from shardy_py.transforms.finish.reshards.candidates import greedy_axes

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
