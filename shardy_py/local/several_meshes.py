"""Ops whose tensors are on several meshes: they run on the shards of their operands on one of these meshes.

No reshard and no reduction was made for such an op, as axes of several meshes have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.local.agreement import disagreeing_factors, factor_axes, is_on_one_mesh, reduced_axes
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.shard_positions import axes_of_parts, devices_of, replica_groups
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

_Axes = Mapping[int, tuple[AxisRef, ...]]


def on_operand_mesh(shard: Shard, rule: OpShardingRule) -> Shard | None:
    """Return an op on the shards of one operand, of the largest first; None where that moves more than gathering.

    What is returned has the operands of the device as they are, with the shardings that they still have to get.

    Args:
        shard: The op on one device.
        rule: Its rule.
    """
    if is_on_one_mesh(shard):
        return None
    sizes = [prod(static_shape(value.type) or ()) for value in shard.op.operands]
    numbers = [number for number, item in enumerate(shard.operand_shardings) if shard.sharded_dims(item)]
    least, best = _elements_to_gather(shard, rule), None
    for number in sorted(numbers, key=lambda number: -sizes[number]):
        for others in (False, True):
            part = _on_mesh_of(number, shard, rule, others=others)
            moved = least if part is None else _elements_to_move(shard, part, rule)
            if moved < least:
                least, best = moved, part
    return best


def moved_dims(shard: Shard, before: TensorSharding | None, after: TensorSharding | None) -> list[int]:
    """Return the dimensions of which some device has other parts under a sharding than under another one."""
    rank = max(0 if item is None else item.rank for item in (before, after))
    return [dim for dim in range(rank) if parts_of(shard, before, dim) != parts_of(shard, after, dim)]


def parts_of(shard: Shard, sharding: TensorSharding | None, dim: int) -> list[int] | None:
    """Return the part of a dimension that each device has, None where it is not cut."""
    return None if sharding is None or shard.parts(sharding, dim) == 1 else shard.positions(sharding, dim)


def without_dims(sharding: TensorSharding | None, dims: Sequence[int]) -> TensorSharding | None:
    """Return a sharding in which some dimensions are not sharded."""
    if sharding is None:
        return None
    numbered = enumerate(sharding.dim_shardings)
    return TensorSharding(sharding.mesh, tuple(DimensionSharding() if dim in dims else item for dim, item in numbered))


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


def _on_mesh_of(number: int, shard: Shard, rule: OpShardingRule, *, others: bool) -> Shard | None:
    """Return an op whose tensors are sharded as one operand is; None where axes cannot be handed to the others.

    Args:
        number: The number of the operand.
        shard: The op on one device.
        rule: Its rule.
        others: Whether factors that it does not have, or that are whole there, are sharded as other operands are.
    """
    main = shard.operand_shardings[number]
    if main is None:
        return None
    axes = dict(factor_axes(rule.operand_mappings[number], main, rule, shard))
    pairs = zip(rule.operand_mappings, shard.operand_shardings, strict=True)
    for mapping, sharding in pairs if others else ():
        moved = _on_mesh(shard, sharding, main)
        used = [axis for item in axes.values() for axis in item]
        for factor, axes_of_factor in factor_axes(mapping, moved, rule, shard).items() if moved is not None else ():
            if not axes.get(factor) and all(_fits(axis, used) for axis in axes_of_factor):
                axes[factor] = axes_of_factor
    operands, results = shard.op.operands, shard.op.results
    tensors = [*zip(operands, rule.operand_mappings, strict=True), *zip(results, rule.result_mappings, strict=True)]
    if not all(_can_be_handed(axes, mapping, rule) for place, (_, mapping) in enumerate(tensors) if place != number):
        return None
    shardings = [_sharding(value, mapping, axes, main) for value, mapping in tensors]
    return evolve(shard, operand_shardings=shardings[: len(operands)], result_shardings=shardings[len(operands) :])


def _fits(axis: AxisRef, used: Sequence[AxisRef]) -> bool:
    """Return whether an axis, or a part of one, can cut a tensor that others cut."""
    return not any(axis.overlaps(other) or not axis.can_coexist(other) for other in used)


def _on_mesh(shard: Shard, sharding: TensorSharding | None, model: TensorSharding) -> TensorSharding | None:
    """Return a sharding that gives devices the same parts along axes of another one's mesh; None where none does."""
    if sharding is None:
        return None
    mesh = shard.mesh(model)
    if sorted(devices_of(mesh)) != sorted(devices_of(shard.mesh(sharding))):
        return None
    dims = [axes_of_parts(mesh, shard.positions(sharding, dim)) for dim in range(sharding.rank)]
    if None in dims:
        return None
    return TensorSharding(model.mesh, tuple(DimensionSharding(axes or ()) for axes in dims))


def _can_be_handed(axes: _Axes, mapping: Sequence[Sequence[int]], rule: OpShardingRule) -> bool:
    """Return whether no dimension has axes for one of several factors."""
    return not any(
        any(axes.get(factor) for factor in dim) and sum(rule.factor_sizes[factor] > 1 for factor in dim) > 1
        for dim in mapping
    )


def _sharding(
    value: Value, mapping: Sequence[Sequence[int]], axes: _Axes, main: TensorSharding
) -> TensorSharding | None:
    """Return the sharding of a tensor along the axes of its factors; None where it has none."""
    rank = len(static_shape(value.type) or ())
    dims = [tuple(axis for factor in dim for axis in axes.get(factor, ())) for dim in mapping] or [()] * rank
    return TensorSharding(main.mesh, tuple(map(DimensionSharding, dims))) if any(dims) else None


def _elements_to_move(shard: Shard, part: Shard, rule: OpShardingRule) -> int:
    """Return the number of elements that devices get for an op that runs on other shards than its own."""
    changes = [
        *zip(shard.op.operands, shard.operand_shardings, part.operand_shardings, strict=True),
        *zip(shard.op.results, part.result_shardings, shard.result_shardings, strict=True),
    ]
    moved = sum(_elements(shard, value, before, moved_dims(shard, before, after)) for value, before, after in changes)
    if not reduced_axes(part, rule):
        return moved
    pairs = zip(part.op.results, part.result_shardings, strict=True)
    return moved + 2 * sum(prod(static_shape(part.local_type(value.type, item)) or ()) for value, item in pairs)


def _elements_to_gather(shard: Shard, rule: OpShardingRule) -> int:
    """Return the number of elements that devices get where the dimensions that disagree are gathered."""
    factors = disagreeing_factors(shard, rule)
    return sum(
        _elements(
            shard,
            value,
            sharding,
            [dim for dim, dim_factors in enumerate(mapping) if factors.intersection(dim_factors)],
        )
        for value, sharding, mapping in zip(
            shard.op.operands, shard.operand_shardings, rule.operand_mappings, strict=True
        )
    )


def _elements(shard: Shard, value: Value, sharding: TensorSharding | None, dims: Sequence[int]) -> int:
    """Return the number of elements of a tensor on a device after some dimensions are gathered; 0 if none is cut."""
    gathered = [dim for dim in dims if shard.parts(sharding, dim) > 1]
    shape = static_shape(shard.local_type(value.type, sharding)) or ()
    return prod(shape) * prod(shard.parts(sharding, dim) for dim in gathered) if gathered else 0
