"""Ops whose operands are on one mesh and whose results are on another: they run on the shards of their operands.

No reshard and no reduction was made for such an op, as axes of several meshes have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from shardy_py.ir.graph import Value
from shardy_py.ir.local import Shard, no_local_form
from shardy_py.ir.types import static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.manual_axes import common_mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.local.agreement import factor_axes, is_on_one_mesh, reduced_axes


def on_operand_mesh(shard: Shard, rule: OpShardingRule) -> Shard | None:
    """Return an op whose results are sharded as its operands are; None where that moves more than gathering these.

    Args:
        shard: The op on one device.
        rule: Its rule.
    """
    given = [item if shard.sharded_dims(item) else None for item in shard.operand_shardings]
    known = [item for item in given if item is not None]
    if is_on_one_mesh(shard) or not known or common_mesh(known, shard.meshes, ignore_device_ids=True) is None:
        return None
    axes: dict[int, tuple[AxisRef, ...]] = {}
    for mapping, sharding in zip(rule.operand_mappings, given, strict=True):
        axes.update({factor: own for factor, own in factor_axes(mapping, sharding, rule, shard).items() if own})
    results = []
    for mapping, value in zip(rule.result_mappings, shard.op.results, strict=True):
        dims = [tuple(axis for factor in dim for axis in axes.get(factor, ())) for dim in mapping]
        if any(
            own and len([factor for factor in dim if rule.factor_sizes[factor] > 1]) > 1
            for own, dim in zip(dims, mapping, strict=True)
        ):
            return None
        rank = len(static_shape(value.type) or ())
        dims = dims or [()] * rank
        results.append(TensorSharding(known[0].mesh, tuple(map(DimensionSharding, dims))) if any(dims) else None)
    part = evolve(shard, operand_shardings=given, result_shardings=results)
    moved = _elements(shard.op.results, results)
    return part if moved < _elements(shard.op.operands, given) else None


def combined(shard: Shard, rule: OpShardingRule, values: Sequence[Value]) -> list[Value]:
    """Return partial results combined by all-reduces.

    Args:
        shard: The op on one device.
        rule: Its rule.
        values: Its results.

    Raises:
        CannotLocalize: it is not known how they combine.
    """
    axes = reduced_axes(shard, rule)
    mesh = next((shard.mesh(item) for item in shard.operand_shardings if item is not None), None)
    if not axes or mesh is None:
        return list(values)
    combiners = {shard.semantics.get_reductions(shard.op).combiners.get(factor) for factor in rule.reduction_factors}
    combiner = combiners.pop() if len(combiners) == 1 else None
    if combiner is None:
        raise no_local_form("its partial results cannot be combined by one collective per result")
    groups = replica_groups(mesh, axes)
    return [shard.ops.all_reduce(shard.emit, value, groups, combiner) for value in values]


def _elements(values: Sequence[Value], shardings: Sequence[TensorSharding | None]) -> int:
    """Return the number of elements of the values that are sharded."""
    pairs = zip(values, shardings, strict=True)
    return sum(prod(static_shape(value.type) or ()) for value, sharding in pairs if sharding is not None)
