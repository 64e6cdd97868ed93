"""The collectives of Shardy as ops of a dialect, with groups of devices.

Mirrors convert_global_to_local.cc, the patterns of the sdy collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.ir.graph.enum_attributes import combiner_of_collective
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
)
from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.local.regrid import (
    AxesPerDim,
    Change,
    gather,
    join_from_front,
    padded_to_parts,
    slice_shard,
    split_to_front,
)
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import permutation_pairs, replica_groups
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


@frozen
class CollectiveOptions:
    """The forms of collectives over several dimensions.

    Args:
        per_dim_all_gather: Whether an all-gather of several dimensions is one per dimension.
        combine_multi_dimension_reduce_scatter: Whether a reduce-scatter of several dimensions is one, and not an
            all-reduce and a slice.
        early_gathers: Whether what a broadcast or a constant made is gathered before it.
    """

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    early_gathers: bool = True


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

    @property
    def _change(self) -> Change:
        """The axes of the operand and of the result; those of an operand without a sharding follow from the result."""
        shape = self.shard.op.results[0].shape
        return Change.between(self.shard, shape, self.shard.operand_shardings[0], self._out)

    def run(self) -> Value:
        """Return the result of the collective on the device."""
        (value,) = self.shard.operands
        self.shard.result_type()
        return _CONVERSIONS[self.shard.op.name](self, value)

    def all_gather(self, value: Value) -> Value:
        """Return the shards joined along each dimension that is gathered."""
        axes = self._axes_per_dim("gathering_axes")
        return gather(self.shard, value, self._change, axes, one_by_one=self.options.per_dim_all_gather)

    def all_slice(self, value: Value) -> Value:
        """Return the part of the device."""
        return slice_shard(self.shard, value, self._change, self._axes_per_dim("slicing_axes"))

    def all_reduce(self, value: Value) -> Value:
        """Return the combination of the partial results."""
        axes = self._without_complete_axes(self.shard.op.attributes["reduction_axes"].axes)
        return self._reduce(value, axes) if axes else value

    def reduce_scatter(self, value: Value) -> Value:
        """Return the part of the device of the combined partial results."""
        per_dim = self._axes_per_dim("reduce_scatter_axes")
        dims = [dim for dim, axes in enumerate(per_dim) if axes]
        scattered_axes = [axis for dim in dims for axis in per_dim[dim]]
        axes = self._without_complete_axes(scattered_axes)
        is_one = len(dims) == 1 or self.options.combine_multi_dimension_reduce_scatter
        is_complete = axes != scattered_axes
        if not is_one or is_complete or not all(map(self._change.nests, dims)):
            return slice_shard(self.shard, self._reduce(value, axes) if axes else value, self._change, per_dim)
        ops, emit = self.shard.ops, self.shard.emit
        groups = replica_groups(self._mesh, axes)
        value = padded_to_parts(self.shard, value, per_dim, self._mesh)
        if len(dims) == 1:
            return ops.reduce_scatter(emit, value, dims[0], groups, self._combiner)
        parts = split_to_front(self.shard, value, {dim: axes_size(per_dim[dim], self._mesh) for dim in dims})
        scattered = ops.reduce_scatter(emit, parts, 0, groups, self._combiner)
        return ops.reshape(emit, scattered, scattered.shape[1:])

    def all_to_all(self, value: Value) -> Value:
        """Return the tensor with axes moved from one dimension to another."""
        params, change, rank = self.shard.op.attributes["params"].params, self._change, len(value.shape)
        sources = {param.src_dim: tuple(param.axes) for param in params}
        targets = {param.tgt_dim: tuple(param.axes) for param in params}
        sliced = [targets.get(dim, ()) for dim in range(rank)]
        if not all(map(change.nests, (*sources, *targets))):
            gathered = [sources.get(dim, ()) for dim in range(rank)]
            after = [change.after[dim] if dim in sources else axes for dim, axes in enumerate(change.before)]
            value = gather(self.shard, value, evolve(change, after=after), gathered, one_by_one=True)
            return slice_shard(self.shard, value, evolve(change, before=after), sliced)
        moved = self._exchange(padded_to_parts(self.shard, value, sliced, self._mesh), params)
        sizes = [
            change.size(dim, change.after[dim]) if dim in sources else size for dim, size in enumerate(moved.shape)
        ]
        return self.shard.ops.resize(self.shard.emit, moved, sizes)

    def _exchange(self, value: Value, params: Sequence[Any]) -> Value:
        ops, emit = self.shard.ops, self.shard.emit
        if len(params) == 1:
            (param,) = params
            return ops.all_to_all(emit, value, param.tgt_dim, param.src_dim, replica_groups(self._mesh, param.axes))
        ordered = sorted(params, key=lambda param: param.tgt_dim)
        sizes = {param.tgt_dim: axes_size(param.axes, self._mesh) for param in ordered}
        parts = split_to_front(self.shard, value, sizes)
        axes = [axis for param in ordered for axis in param.axes]
        moved = ops.all_to_all(emit, parts, 0, 0, replica_groups(self._mesh, axes))
        return join_from_front(self.shard, moved, {param.src_dim: sizes[param.tgt_dim] for param in ordered})

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

    def _without_complete_axes(self, axes: Sequence[AxisRef]) -> list[AxisRef]:
        """Return axes without those along which the operand is a complete result already."""
        if not all(axis.can_coexist(done) for axis in axes for done in self.complete):
            raise no_local_form("its operand holds the whole result along a part of an axis only")
        return list(axis_set_difference(axes, self.complete, self._mesh))

    def _axes_per_dim(self, name: str) -> AxesPerDim:
        axes: AxesPerDim = self.shard.op.attributes[name].axes_per_dim
        return axes


_CONVERSIONS: Mapping[str, Callable[[CollectiveConverter, Value], Value]] = {
    ALL_GATHER: CollectiveConverter.all_gather,
    ALL_SLICE: CollectiveConverter.all_slice,
    ALL_REDUCE: CollectiveConverter.all_reduce,
    REDUCE_SCATTER: CollectiveConverter.reduce_scatter,
    ALL_TO_ALL: CollectiveConverter.all_to_all,
    COLLECTIVE_PERMUTE: CollectiveConverter.collective_permute,
}
COLLECTIVES = frozenset(_CONVERSIONS)
MOVES = COLLECTIVES - {ALL_REDUCE, REDUCE_SCATTER}
"""The collectives that combine nothing."""
