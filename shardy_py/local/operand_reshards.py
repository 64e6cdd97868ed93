"""Tensors that go from one sharding to another: gathered, or sliced, along the axes that one has beyond the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from shardy_py.ir.graph.op_names import ALL_SLICE
from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Shard
from shardy_py.local.regrid import Change, gather, slice_shard
from shardy_py.local.several_meshes import parts_of, without_dims
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import TensorSharding


def gather_to(
    shard: Shard,
    value: Value,
    shape: Sequence[int],
    before: TensorSharding,
    after: TensorSharding | None,
    *,
    one_by_one: bool,
) -> Value:
    """Return a tensor gathered along the axes of the dimensions that another sharding leaves whole.

    Args:
        shard: The op for which it is gathered.
        value: The tensor.
        shape: The shape of the whole tensor.
        before: Its sharding.
        after: The other sharding; None for the whole tensor.
        one_by_one: Whether dimensions are gathered one after the other.
    """
    change = Change.between(shard, shape, before, after)
    return gather(shard, value, change, change.joined, one_by_one=one_by_one)


def slice_to(
    shard: Shard, value: Value, shape: Sequence[int], before: TensorSharding | None, after: TensorSharding
) -> Value:
    """Return the part of a tensor under another sharding, along the axes of the dimensions that are whole.

    Args:
        shard: The op for which it is sliced.
        value: The tensor.
        shape: The shape of the whole tensor.
        before: Its sharding; None for the whole tensor.
        after: The other sharding.
    """
    change = Change.between(shard, shape, before, after)
    return slice_shard(shard, value, change, change.cut)


def slice_along(
    shard: Shard, value: Value, shape: Sequence[int], dims: Sequence[int], after: TensorSharding | None
) -> Value:
    """Slice a tensor to the part of the device along some whole dimensions; the others are sliced already."""
    if after is None:
        return value
    return slice_to(shard, value, shape, without_dims(after, dims), after)


def gathered_before_slice(shard: Shard, value: Value, target: TensorSharding | None) -> Value | None:
    """Return the parts under a target sharding of what a value was sliced from, or None if the device lacks them."""
    slice_op = value.defining_op
    local_source = shard.local_of(slice_op.operands[0]) if slice_op is not None and slice_op.name == ALL_SLICE else None
    if slice_op is None or local_source is None:
        return None
    wider, sharding = local_source
    columns = [(parts_of(shard, sharding, dim), parts_of(shard, target, dim)) for dim in range(len(value.shape))]
    if any(parts is not None and parts != target_parts for parts, target_parts in columns):
        return gathered_before_slice(shard, slice_op.operands[0], target)
    if target is None or all(parts == target_parts for parts, target_parts in columns):
        return wider
    return slice_to(shard, wider, value.shape, sharding, target)


def common_sharding(shard: Shard, before: TensorSharding | None, after: TensorSharding | None) -> TensorSharding | None:
    """Return the sharding along the major axes that two shardings share in each dimension."""
    if before is None or after is None or shard.mesh(before) != shard.mesh(after):
        return None
    dims = []
    for before_dim, after_dim in zip(before.dim_shardings, after.dim_shardings, strict=True):
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(before_dim.axes, after_dim.axes, strict=False))
        dims.append(type(before_dim)(tuple(axis for axis, _ in pairs)))
    return TensorSharding(before.mesh, tuple(dims))


def minor_axes(sharding: TensorSharding, major: TensorSharding | None) -> list[tuple[AxisRef, ...]]:
    """Return, per dimension, the axes of a sharding behind those of another one, with which it begins."""
    counts = [0 if major is None else len(major.dim_shardings[dim].axes) for dim in range(sharding.rank)]
    return [tuple(dim.axes[count:]) for dim, count in zip(sharding.dim_shardings, counts, strict=True)]
