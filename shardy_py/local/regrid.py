"""Changes of the parts that devices have of a tensor: gathering and slicing, also where dimensions do not divide.

A dimension of n elements in k parts has ceil(n / k) of them on each device; the last parts are padded at the high end.
So gathering some of the axes need not give the parts of the others: 10 elements over 4 x 2 devices are 2 per device, of
which two neighbours have 4, while 10 elements over 4 devices are 3 per device. Then each device is sent the pieces that
it lacks, or the dimension is gathered whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import evolve

from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Shard
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_moves import Windows, own_runs
from shardy_py.sharding.shard_positions import replica_groups, shard_positions
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import frozen

AxesPerDim = Sequence[tuple[AxisRef, ...]]


@frozen
class Change:
    """The axes of the dimensions of a tensor before and after.

    Args:
        shape: The sizes of the whole tensor.
        mesh: The mesh.
        before: The axes before.
        after: The axes after.
    """

    shape: Sequence[int]
    mesh: Mesh
    before: AxesPerDim
    after: AxesPerDim

    @classmethod
    def between(
        cls, shard: Shard, shape: Sequence[int], before: TensorSharding | None, after: TensorSharding | None
    ) -> Change:
        """Return the change from one sharding to another; None is the whole tensor."""
        sharding = before if before is not None else after
        mesh = Mesh() if sharding is None else shard.mesh(sharding)
        return cls(shape, mesh, _axes(before, len(shape)), _axes(after, len(shape)))

    @property
    def joined(self) -> AxesPerDim:
        """The axes of the dimensions that are whole after."""
        return [() if after else before for before, after in zip(self.before, self.after, strict=True)]

    @property
    def cut(self) -> AxesPerDim:
        """The axes of the dimensions that are whole before."""
        return [() if before else after for before, after in zip(self.before, self.after, strict=True)]

    def parts(self, axes: Sequence[AxisRef]) -> int:
        """Return the number of parts along some axes."""
        return axes_size(axes, self.mesh)

    def size(self, dim: int, axes: Sequence[AxisRef]) -> int:
        """Return the size of a part of a dimension."""
        return -(-self.shape[dim] // self.parts(axes))

    def nests(self, dim: int) -> bool:
        """Return whether several small parts of a dimension are a large one, or the whole dimension."""
        coarse, fine = sorted((self.before[dim], self.after[dim]), key=self.parts)
        parts = self.parts(coarse)
        return parts == 1 or self.parts(fine) // parts * self.size(dim, fine) == self.size(dim, coarse)


def gather(shard: Shard, value: Value, change: Change, per_dim: AxesPerDim, *, one_by_one: bool) -> Value:
    """Return a tensor with all its shards along some axes.

    Args:
        shard: The op for which it is gathered.
        value: The tensor.
        change: The axes before and after.
        per_dim: The axes to gather, minor ones of those before.
        one_by_one: Whether dimensions are gathered one after the other.
    """
    value, per_dim = _moved(shard, value, change, per_dim)
    nests = [not axes or change.nests(dim) for dim, axes in enumerate(per_dim)]
    gathered = [axes if nests[dim] else tuple(change.before[dim]) for dim, axes in enumerate(per_dim)]
    sliced = [() if nests[dim] else tuple(change.after[dim]) for dim in range(len(per_dim))]
    value = _join(shard, value, gathered, change.mesh, one_by_one=one_by_one)
    sizes = [
        change.size(dim, () if sliced[dim] else change.after[dim]) if gathered[dim] else size
        for dim, size in enumerate(value.shape)
    ]
    return _cut(shard, shard.ops.resize(shard.emit, value, sizes), sliced, change.mesh)


def slice_shard(shard: Shard, value: Value, change: Change, per_dim: AxesPerDim) -> Value:
    """Return the part of a tensor that the device has along some axes.

    Args:
        shard: The op for which it is sliced.
        value: The tensor.
        change: The axes before and after.
        per_dim: The axes to slice along, minor ones of those after.
    """
    value, per_dim = _moved(shard, value, change, per_dim)
    apart = [dim for dim, axes in enumerate(per_dim) if axes and not change.nests(dim)]
    gathered = [tuple(change.before[dim]) if dim in apart else () for dim in range(len(per_dim))]
    gather_change = evolve(change, after=[() if dim in apart else axes for dim, axes in enumerate(change.before)])
    value = gather(shard, value, gather_change, gathered, one_by_one=False)
    sliced = [tuple(change.after[dim]) if dim in apart else axes for dim, axes in enumerate(per_dim)]
    return _cut(shard, value, sliced, change.mesh)


def padded_to_parts(shard: Shard, value: Value, per_dim: AxesPerDim, mesh: Mesh) -> Value:
    """Return a tensor whose dimensions divide into equal parts along some axes."""
    sizes = [
        -(-size // axes_size(axes, mesh)) * axes_size(axes, mesh)
        for size, axes in zip(value.shape, per_dim, strict=True)
    ]
    return shard.ops.resize(shard.emit, value, sizes)


def split_to_front(shard: Shard, value: Value, sizes: Mapping[int, int]) -> Value:
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
    parts = ops.transpose(emit, ops.reshape(emit, value, shape), [*(counts[dim] for dim in sizes), *rest])
    return ops.reshape(emit, parts, (prod(sizes.values()), *(shape[number] for number in rest)))


def join_from_front(shard: Shard, value: Value, sizes: Mapping[int, int]) -> Value:
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


def _moved(shard: Shard, value: Value, change: Change, per_dim: AxesPerDim) -> tuple[Value, AxesPerDim]:
    """Return a tensor with other parts of the dimensions that do not nest, and the axes per dimension that are left.

    Where all communication is written already, and where the dialect cannot send pieces, such dimensions are left, too.
    """
    remaining_axes = list(per_dim)
    for dim, axes in enumerate(per_dim):
        if not axes or change.nests(dim) or shard.is_resolved:
            continue
        fine = max(change.before[dim], change.after[dim], key=change.parts)
        sharding = TensorSharding(
            change.mesh, tuple(DimensionSharding(fine if number == dim else ()) for number in range(len(per_dim)))
        )
        moved = shard.ops.windows(shard, value, dim, sharding, _windows(change, dim, value.shape[dim]))
        if moved is not None:
            value, remaining_axes[dim] = moved, ()
    return value, remaining_axes


def _windows(change: Change, dim: int, shard_size: int) -> Windows:
    """Return the parts of a dimension after a change as windows of those before, for each part of the finer ones."""
    before, after = change.parts(change.before[dim]), change.parts(change.after[dim])
    held, size = own_runs(change.shape[dim], before, shard_size), change.size(dim, change.after[dim])
    count = max(before, after)
    parts = range(count)
    starts = [part * after // count * size for part in parts]
    return Windows([held[part * before // count] for part in parts], starts, size)


def _axes(sharding: TensorSharding | None, rank: int) -> AxesPerDim:
    return [() if sharding is None else tuple(sharding.of_dimension(dim).axes) for dim in range(rank)]


def _join(shard: Shard, value: Value, per_dim: AxesPerDim, mesh: Mesh, *, one_by_one: bool) -> Value:
    """Return the shards of a tensor joined along some axes, with their padding."""
    ops, emit = shard.ops, shard.emit
    dims = [dim for dim, axes in enumerate(per_dim) if axes_size(axes, mesh) > 1]
    if len(dims) == 1 or one_by_one:
        for dim in reversed(dims):
            value = ops.all_gather(emit, value, dim, replica_groups(mesh, per_dim[dim]))
        return value
    if not dims:
        return value
    groups = replica_groups(mesh, [axis for dim in dims for axis in per_dim[dim]])
    stacked = ops.all_gather(emit, ops.reshape(emit, value, (1, *value.shape)), 0, groups)
    return join_from_front(shard, stacked, {dim: axes_size(per_dim[dim], mesh) for dim in dims})


def _cut(shard: Shard, value: Value, per_dim: AxesPerDim, mesh: Mesh) -> Value:
    """Return the part of the device of a tensor whose parts along some axes nest in those that it has."""
    sizes, starts = [], []
    for size, axes in zip(value.shape, per_dim, strict=True):
        parts = axes_size(axes, mesh)
        part = -(-size // parts)
        sizes.append(part)
        starts.append([position * part for position in shard_positions(mesh, axes)] if parts > 1 else None)
    if not any(starts):
        return value
    value = padded_to_parts(shard, value, per_dim, mesh)
    offsets = [shard.ops.offset(shard.emit, table) for table in starts]
    return shard.ops.dynamic_slice(shard.emit, value, offsets, sizes)
