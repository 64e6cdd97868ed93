"""Agreement of the shardings of an op with its rule: which dimensions have to be whole for it to run on shards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.ir.interfaces.ops import ReadsSizes
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import project
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding

_LOCAL = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)


def disagreeing_factors(shard: Shard, rule: OpShardingRule, *, has_form: bool = False) -> set[int]:
    """Return the factors along which the tensors of an op are sharded differently, or to which no axes can be assigned.

    A factor whose kind asks for replication or a permutation is among them where it is sharded, and so is one that
    passes through but not to every result: the results would differ between devices.

    Where the tensors are on several meshes no reshard and no reduction was made for the op. Axes of one name cut in
    different ways then, and a sharded reduction factor is among the factors, too.

    Args:
        shard: The op with its operands on the device.
        rule: Its rule.
        has_form: Whether the op has a local form, which handles factors that need a permutation, and factors that only
            results have.
    """
    mapped_factors: dict[int, tuple[AxisRef, ...]] = {}
    result: set[int] = set()
    for mapping, sharding in zip(rule.mappings, _shardings(shard), strict=True):
        for dim_mapping in mapping:
            for factor in dim_mapping:
                mapped_factors.setdefault(factor, ())
        if sharding is None or not mapping:
            continue
        result |= overflowing_factors(sharding, mapping, rule, shard.mesh(sharding))
    on_one_mesh = is_on_one_mesh(shard)
    axes = [
        _factor_parts(mapping, sharding, rule, shard, by_axes=on_one_mesh)
        for mapping, sharding in zip(rule.mappings, _shardings(shard), strict=True)
    ]
    local = _LOCAL if on_one_mesh else (FactorKind.PASS_THROUGH,)
    lost = _lost_factors(rule, shard)
    in_operands = {factor for mapping in rule.operand_mappings for dim in mapping for factor in dim}
    for factor in mapped_factors:
        tensor_axes = {parts_of_factor[factor] for parts_of_factor in axes if factor in parts_of_factor}
        is_cut = tensor_axes != {()}
        needs_whole = rule.kind(factor) not in local or factor in lost
        is_in_results_only = not has_form and factor not in in_operands
        if len(tensor_axes) > 1 or (is_cut and (needs_whole or is_in_results_only)):
            result.add(factor)
    return result - set(rule.permutation_factors) if has_form and on_one_mesh else result


def parts_by_form(shard: Shard, rule: OpShardingRule) -> dict[int, int]:
    """Return the factors that the rule wants replicated and the local form takes sharded, with their number of parts.

    The local form communicates itself: each device writes the elements in its part, receives the elements that it
    writes, or receives the few elements of the whole results.

    Args:
        shard: The op on one device.
        rule: Its rule.
    """
    parts_of_factor: dict[int, int] = {}
    reads_sizes = shard.semantics.has_trait(shard.op, ReadsSizes)
    sharding = shard.operand_shardings[0] if shard.operand_shardings else None
    for dim in shard.sharded_dims(sharding):
        parts = shard.parts(sharding, dim)
        results = {
            shard.parts(item, dim) if item is not None and item.rank > dim else 1 for item in shard.result_shardings
        }
        exchange = shard.ops.collected if results == {1} else shard.ops.exchanged
        fits = reads_sizes or (
            len(results) == 1 and results <= {1, parts} and exchange(shard.op, dim, parts) is not None
        )
        if fits:
            parts_of_factor.update(dict.fromkeys(rule.operand_mappings[0][dim], parts))
    for number, other in enumerate(shard.operand_shardings[1:], 1):
        for dim in _placed_dims(shard, number, other):
            parts_of_factor.update(dict.fromkeys(rule.operand_mappings[number][dim], shard.parts(other, dim)))
    return parts_of_factor


def _placed_dims(shard: Shard, number: int, sharding: TensorSharding | None) -> list[int]:
    """Return the sharded dimensions of an operand that the local form writes into a result of the same parts."""
    result = shard.result_shardings[0] if shard.result_shardings else None
    if sharding is None or result is None or sharding.rank != result.rank:
        return []
    same = [dim for dim in shard.sharded_dims(sharding) if shard.parts(sharding, dim) == shard.parts(result, dim)]
    ops, op = shard.ops, shard.op
    return [dim for dim in same if ops.placed(op, number, dim, shard.parts(sharding, dim)) is not None]


def has_unfit_axes(sharding: TensorSharding | None) -> bool:
    """Return whether a sharding has sub-axes that cannot coexist, such as `"x":(1)2` and `"x":(1)3`."""
    axes = [] if sharding is None else [axis for dim in sharding.dim_shardings for axis in dim.axes if axis.sub_axis]
    return any(not axis.can_coexist(other) for axis, other in combinations(axes, 2))


def is_on_one_mesh(shard: Shard) -> bool:
    """Return whether all tensors of an op are on meshes with the same axes, or have no sharding."""
    shardings = [item for item in _shardings(shard) if item is not None]
    return not shardings or common_mesh(shardings, shard.meshes, ignore_device_ids=True) is not None


def reduced_axes(shard: Shard, rule: OpShardingRule) -> list[AxisRef]:
    """Return the axes along which the results of an op on shards are partial."""
    result: list[AxisRef] = []
    for mapping, sharding in zip(rule.operand_mappings, shard.operand_shardings, strict=True):
        for factor, axes in factor_axes(mapping, sharding, rule, shard).items():
            if rule.kind(factor) is FactorKind.REDUCTION:
                result.extend(axis for axis in axes if axis not in result)
    return result


def check_reductions(op: Op, shard: Shard, rule: OpShardingRule, *, starts_once: bool) -> None:
    """Check that one collective per result can combine the partial results of an op.

    Args:
        op: The op.
        shard: The op with its operands on the device.
        rule: Its rule.
        starts_once: Whether its local form counts initial values once.

    Raises:
        CannotLocalize: it cannot, or an initial value would count once per shard.
    """
    reductions = shard.semantics.get_reductions(op)
    used = {
        factor
        for mapping, sharding in zip(rule.operand_mappings, shard.operand_shardings, strict=True)
        for dim, factors in enumerate(mapping)
        if shard.parts(sharding, dim) > 1
        for factor in factors
    }.intersection(rule.reduction_factors)
    combiners = {reductions.combiners.get(factor) for factor in used}
    if None in combiners or len(combiners) > 1:
        raise no_local_form("its partial results cannot be combined by one collective per result")
    if starts_once or not reductions.initial_operands:
        return
    if not all(item is not None and item.is_idempotent for item in combiners):
        raise no_local_form("its initial value would count once per shard")


def factor_axes(
    mapping: Sequence[Sequence[int]], sharding: TensorSharding | None, rule: OpShardingRule, shard: Shard
) -> dict[int, tuple[AxisRef, ...]]:
    """Return the axes along which a tensor is sharded, by factor."""
    if sharding is None or not mapping:
        return {factor: () for dim in mapping for factor in dim}
    mesh = shard.mesh(sharding)
    projected = project(sharding, tuple(map(tuple, mapping)), rule.factor_sizes, mesh)
    return {
        factor: tuple(axis for axis in item.axes if axis.size(mesh) > 1) for factor, item in projected.factors.items()
    }


def overflowing_factors(
    sharding: TensorSharding, mapping: Sequence[Sequence[int]], rule: OpShardingRule, mesh: Mesh
) -> set[int]:
    """Return the factors of dimensions whose axes do not divide them.

    The parts of a dimension that has one factor are those of the factor, with padding where they do not divide.
    """
    result: set[int] = set()
    projected = project(sharding, tuple(map(tuple, mapping)), rule.factor_sizes, mesh)
    for dim in mapping:
        items = [projected.factors[factor] for factor in dim if factor in projected.factors]
        uneven = sum(rule.factor_sizes[factor] > 1 for factor in dim) > 1 and any(
            rule.factor_sizes[factor] % axes_size(projected.factors[factor].axes, mesh)
            for factor in dim
            if factor in projected.factors
        )
        if uneven or any(item.overflow_axes for item in items):
            result.update(dim)
    return result


def without_factors(
    sharding: TensorSharding | None, mapping: Sequence[Sequence[int]], factors: set[int]
) -> TensorSharding | None:
    """Return a sharding in which no dimension that has one of the factors is sharded."""
    if sharding is None or not mapping:
        return sharding
    dims = tuple(
        type(dim)() if factors.intersection(dim_factors) else dim
        for dim, dim_factors in zip(sharding.dim_shardings, mapping, strict=True)
    )
    return TensorSharding(sharding.mesh, dims)


def _lost_factors(rule: OpShardingRule, shard: Shard) -> set[int]:
    """Return the factors that a result with elements lacks, and along which nothing is reduced."""
    lacking: set[int] = set()
    for mapping, result in zip(rule.result_mappings, shard.op.results, strict=True):
        if 0 not in (static_shape(result.type) or ()):
            lacking.update(set(range(rule.num_factors)).difference(*mapping))
    return lacking.difference(rule.reduction_factors)


def _shardings(shard: Shard) -> list[TensorSharding | None]:
    return [*shard.operand_shardings, *shard.result_shardings]


def _factor_parts(
    mapping: Sequence[Sequence[int]],
    sharding: TensorSharding | None,
    rule: OpShardingRule,
    shard: Shard,
    *,
    by_axes: bool,
) -> dict[int, tuple[object, ...]]:
    """Return the axes of each factor, or, to compare meshes, the index of the part that each device has."""
    axes = factor_axes(mapping, sharding, rule, shard)
    if by_axes or sharding is None:
        return dict(axes)
    mesh = shard.mesh(sharding)
    return {
        factor: tuple(shard_positions(mesh, axes_of_factor)) if axes_of_factor else ()
        for factor, axes_of_factor in axes.items()
    }
