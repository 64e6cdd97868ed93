"""The collectives of Shardy as ops of a dialect, with groups of devices.

Mirrors convert_global_to_local.cc, the patterns of the sdy collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from attrs import define, frozen

from shardy_py.ir.collective_combiner import combiner_of_collective
from shardy_py.ir.graph import Value
from shardy_py.ir.local import Shard, no_local_form
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import permutation_pairs, replica_groups, shard_positions
from shardy_py.sharding.tensor import TensorSharding

AxesPerDim = Sequence[tuple[AxisRef, ...]]


@frozen
class CollectiveOptions:
    """The forms of collectives over several dimensions.

    Args:
        per_dim_all_gather: Whether an all-gather of several dimensions is one per dimension.
        combine_multi_dimension_reduce_scatter: Whether a reduce-scatter of several dimensions is one, and not an
            all-reduce and a slice.
    """

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False


@define
class CollectiveConverter:
    """Makes the local ops of one collective.

    Attributes:
        shard: The collective with its operand on the device.
        options: The options.
        complete: The axes along which the operand holds the whole result already.
    """

    shard: Shard
    options: CollectiveOptions
    complete: tuple[AxisRef, ...] = ()

    @property
    def _mesh(self) -> Mesh:
        return self.shard.mesh(self._out)

    @property
    def _out(self) -> TensorSharding:
        sharding = self.shard.result_shardings[0]
        if sharding is None:
            raise no_local_form("the collective has no out_sharding")
        return sharding

    def run(self) -> Value:
        """Return the result of the collective on the device."""
        (value,) = self.shard.operands
        self.shard.result_type()
        return _CONVERSIONS[self.shard.op.name](self, value)

    def all_gather(self, value: Value) -> Value:
        """Return the shards joined along each dimension that is gathered."""
        return gather(self.shard, value, self._axes_per_dim("gathering_axes"), self._mesh, self.options)

    def all_slice(self, value: Value) -> Value:
        """Return the part of the device."""
        return slice_shard(self.shard, value, self._axes_per_dim("slicing_axes"), self._mesh)

    def all_reduce(self, value: Value) -> Value:
        """Return the combination of the partial results."""
        axes = self._incomplete(self.shard.op.attributes["reduction_axes"].axes)
        return self._reduce(value, axes) if axes else value

    def reduce_scatter(self, value: Value) -> Value:
        """Return the part of the device of the combined partial results."""
        per_dim = self._axes_per_dim("reduce_scatter_axes")
        dims = [dim for dim, axes in enumerate(per_dim) if axes]
        axes = self._incomplete([axis for dim in dims for axis in per_dim[dim]])
        if len(axes) < sum(len(per_dim[dim]) for dim in dims):
            return slice_shard(self.shard, self._reduce(value, axes) if axes else value, per_dim, self._mesh)
        ops, emit = self.shard.ops, self.shard.emit
        groups = replica_groups(self._mesh, axes)
        if len(dims) == 1:
            return ops.reduce_scatter(emit, value, dims[0], groups, self._combiner)
        if not self.options.combine_multi_dimension_reduce_scatter:
            return slice_shard(self.shard, self._reduce(value, axes), per_dim, self._mesh)
        sizes = {dim: axes_size(per_dim[dim], self._mesh) for dim in dims}
        parts = _split_to_front(self.shard, value, sizes, list(sizes))
        scattered = ops.reduce_scatter(emit, parts, 0, groups, self._combiner)
        return ops.reshape(emit, scattered, scattered.shape[1:])

    def all_to_all(self, value: Value) -> Value:
        """Return the tensor with axes moved from one dimension to another."""
        ops, emit = self.shard.ops, self.shard.emit
        params = self.shard.op.attributes["params"].params
        if len(params) == 1:
            (param,) = params
            return ops.all_to_all(emit, value, param.tgt_dim, param.src_dim, replica_groups(self._mesh, param.axes))
        ordered = sorted(params, key=lambda param: param.tgt_dim)
        sizes = {param.tgt_dim: axes_size(param.axes, self._mesh) for param in ordered}
        parts = _split_to_front(self.shard, value, sizes, list(sizes))
        axes = [axis for param in ordered for axis in param.axes]
        moved = ops.all_to_all(emit, parts, 0, 0, replica_groups(self._mesh, axes))
        return _join_from_front(self.shard, moved, {param.src_dim: sizes[param.tgt_dim] for param in ordered})

    def collective_permute(self, value: Value) -> Value:
        """Return the shard that another device had."""
        source = self.shard.operand_shardings[0]
        if source is None:
            return value
        pairs = permutation_pairs(source, self.shard.mesh(source), self._out, self._mesh)
        return self.shard.ops.collective_permute(self.shard.emit, value, pairs)

    @property
    def _combiner(self) -> Combiner:
        combiner = combiner_of_collective(self.shard.op, self.shard.semantics)
        if combiner is None:
            raise no_local_form("the partial results of its operand cannot be combined")
        return combiner

    def _reduce(self, value: Value, axes: Sequence[AxisRef]) -> Value:
        groups = replica_groups(self._mesh, axes)
        return self.shard.ops.all_reduce(self.shard.emit, value, groups, self._combiner)

    def _incomplete(self, axes: Sequence[AxisRef]) -> list[AxisRef]:
        left = [axis for axis in axes if not any(done.contains(axis) for done in self.complete)]
        if any(axis.overlaps(done) for axis in left for done in self.complete):
            raise no_local_form("its operand holds the whole result along a part of an axis only")
        return left

    def _axes_per_dim(self, name: str) -> AxesPerDim:
        axes: AxesPerDim = self.shard.op.attributes[name].axes_per_dim
        return axes


_CONVERSIONS: Mapping[str, Callable[[CollectiveConverter, Value], Value]] = {
    "sdy.all_gather": CollectiveConverter.all_gather,
    "sdy.all_slice": CollectiveConverter.all_slice,
    "sdy.all_reduce": CollectiveConverter.all_reduce,
    "sdy.reduce_scatter": CollectiveConverter.reduce_scatter,
    "sdy.all_to_all": CollectiveConverter.all_to_all,
    "sdy.collective_permute": CollectiveConverter.collective_permute,
}
COLLECTIVES = frozenset(_CONVERSIONS)


def gather(shard: Shard, value: Value, per_dim: AxesPerDim, mesh: Mesh, options: CollectiveOptions) -> Value:
    """Return a tensor with all its shards along some axes."""
    ops, emit = shard.ops, shard.emit
    dims = [dim for dim, axes in enumerate(per_dim) if axes_size(axes, mesh) > 1]
    if len(dims) == 1 or options.per_dim_all_gather:
        for dim in reversed(dims):
            value = ops.all_gather(emit, value, dim, replica_groups(mesh, per_dim[dim]))
        return value
    if not dims:
        return value
    groups = replica_groups(mesh, [axis for dim in dims for axis in per_dim[dim]])
    stacked = ops.all_gather(emit, ops.reshape(emit, value, (1, *value.shape)), 0, groups)
    return _join_from_front(shard, stacked, {dim: axes_size(per_dim[dim], mesh) for dim in dims})


def slice_shard(shard: Shard, value: Value, per_dim: AxesPerDim, mesh: Mesh) -> Value:
    """Return the part of a tensor that the device has along some axes."""
    sizes, starts = [], []
    for size, axes in zip(value.shape, per_dim, strict=True):
        parts = axes_size(axes, mesh)
        if size % parts:
            raise no_local_form(f"a dimension of {size} elements does not divide into {parts} equal parts")
        sizes.append(size // parts)
        table = [position * (size // parts) for position in shard_positions(mesh, axes)] if parts > 1 else None
        starts.append(table)
    if not any(starts):
        return value
    offsets = [shard.ops.offset(shard.emit, table) for table in starts]
    return shard.ops.dynamic_slice(shard.emit, value, offsets, sizes)


def _split_to_front(shard: Shard, value: Value, sizes: Mapping[int, int], order: Sequence[int]) -> Value:
    """Return a tensor whose first dimension counts the parts of some others, the first of them the major one."""
    shape: list[int] = []
    counts: dict[int, int] = {}
    rest: list[int] = []
    for dim, size in enumerate(value.shape):
        if dim in sizes:
            counts[dim] = len(shape)
            shape.append(sizes[dim])
        rest.append(len(shape))
        shape.append(size // sizes.get(dim, 1))
    ops, emit = shard.ops, shard.emit
    parts = ops.transpose(emit, ops.reshape(emit, value, shape), [*(counts[dim] for dim in order), *rest])
    return ops.reshape(emit, parts, (prod(sizes.values()), *(shape[number] for number in rest)))


def _join_from_front(shard: Shard, value: Value, sizes: Mapping[int, int]) -> Value:
    """Return a tensor whose first dimension, which counts parts, became major parts of others, in that order."""
    ops, emit = shard.ops, shard.emit
    local = value.shape[1:]
    order = list(sizes)
    permutation: list[int] = []
    for dim in range(len(local)):
        if dim in sizes:
            permutation.append(order.index(dim))
        permutation.append(len(order) + dim)
    parts = ops.transpose(emit, ops.reshape(emit, value, (*sizes.values(), *local)), permutation)
    return ops.reshape(emit, parts, [size * sizes.get(dim, 1) for dim, size in enumerate(local)])
