"""Local forms of slices, reversals and joining: elements that other devices need go there by permutes."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.cuts import cut_dims, cut_of
from shardy_dialects.stablehlo.local.exchanges import owner_of_slice
from shardy_dialects.stablehlo.local.rotation import find_source
from shardy_dialects.stablehlo.local.spreading import spread_from
from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.shard_moves import Run


def localize_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a slice: whole along a sharded dimension, or what each device has of it, and then moved to its place."""
    limits = list(op.attributes["limit_indices"])
    starts, strides = list(op.attributes["start_indices"]), list(op.attributes["strides"])
    moved: list[tuple[Cut, int, int]] = []
    if all(shard.parts(shard.result_shardings[0], dim) == 1 for dim in cut_dims(shard)):
        return _collected(op, shard)
    for dim in cut_dims(shard):
        if (starts[dim], limits[dim], strides[dim]) != (0, op.operands[0].shape[dim], 1):
            moved.append((cut_of(shard, dim), starts[dim], strides[dim]))
        starts[dim], limits[dim], strides[dim] = 0, shard.operands[0].shape[dim], 1
    changes = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(strides)}
    if not moved:
        return shard.copy(**changes)
    value = shard.operands[0]
    if any(starts) or limits != list(value.shape) or any(stride != 1 for stride in strides):
        sizes = {dim: _count(starts[dim], limits[dim], strides[dim]) for dim in range(len(starts))}
        value = shard.emit.op_like(op, [value], [resized(value, sizes)], changes).result
    for cut, start, stride in moved:
        value = _moved_slice(value, cut, start, stride)
    return [value]


def _collected(op: Op, shard: Shard) -> Combined:
    """Return a slice that one device has, sent to all others.

    Raises:
        CannotLocalize: several devices have a part of it.
    """
    sharding, dims = shard.operand_shardings[0], cut_dims(shard)
    owner = None if len(dims) != 1 else owner_of_slice(op, dims[0], shard.parts(sharding, dims[0]))
    if sharding is None or owner is None or shard.is_resolved:
        raise no_local_form("the result is whole, and several devices have a part of it")
    cut, part = Cut(shard, sharding, dims[0]), shard.operands[0].shape[dims[0]]
    starts, limits = list(op.attributes["start_indices"]), list(op.attributes["limit_indices"])
    starts[cut.dim], limits[cut.dim] = starts[cut.dim] - owner * part, min(limits[cut.dim] - owner * part, part)
    changes = {"start_indices": tuple(starts), "limit_indices": tuple(limits)}
    own = shard.emit.op_like(op, shard.operands, [shard.result_type()], changes).result
    return Combined([spread_from(own, cut, owner)])


def localize_reverse(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the mirrored part of another device, in reversed order."""
    (value,) = shard.operands
    for dim in sorted(set(op.attributes["dimensions"]).intersection(cut_dims(shard))):
        cut = cut_of(shard, dim)
        size, part = op.operands[0].shape[dim], shard.result_shape()[dim]
        starts = [size - (position + 1) * part for position in range(cut.parts)]
        value = WindowFetcher(cut, dim, part).fetch(value, cut.runs(0), starts)
    return [shard.emit.op_like(op, [value], [shard.result_type()]).result]


def localize_concatenate(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the joined shards; where the joined dimension is sharded, elements move to the device that has them."""
    dim = int(op.attributes["dimension"])
    if dim not in cut_dims(shard):
        return shard.copy()
    if shard.is_resolved:
        raise no_local_form(f"dimension {dim} is sharded but the concatenation is on this dimension.")
    cut = cut_of(shard, dim)
    whole = find_source(op, shard, cut)
    if whole is not None:
        return [whole.joined()]
    held: list[list[Run]] = [[] for _ in range(cut.parts)]
    shift = place = 0
    for number, local in enumerate(shard.operands):
        for runs, own in zip(held, cut.runs(number, shift=shift), strict=True):
            runs.extend(Run(run.start, run.size, run.place + place) for run in own)
        shift, place = shift + op.operands[number].shape[dim], place + local.shape[dim]
    joined = shard.emit.op_like(op, shard.operands, [resized(shard.operands[0], {dim: place})]).result
    size = shard.result_shape()[dim]
    return [WindowFetcher(cut, dim, size).fetch(joined, held, [part * size for part in range(cut.parts)])]


def _moved_slice(value: Value, cut: Cut, start: int, stride: int) -> Value:
    """Return the slice along one sharded dimension.

    Each device takes the elements of the slice that it has; these move to the devices to which they belong.

    Args:
        value: What the device has.
        cut: The dimension.
        start: The coordinate of the first element of the slice.
        stride: The distance of its elements.
    """
    op, shard, dim = cut.shard.op, cut.shard, cut.dim
    size, count = op.operands[0].shape[dim], op.results[0].shape[dim]
    phases, held = [], []
    for run in (runs[0] if runs else Run(size, 0) for runs in cut.runs(0)):
        first = max(0, -(-(run.start - start) // stride))
        place = start + first * stride - run.start
        taken = min(count - first, -(-(run.size - place) // stride))
        phases.append(place % stride if taken > 0 else None)
        held.append([Run(first, taken, place // stride)] if taken > 0 else [])
    if stride > 1 and any(held):
        value = _strided(value, cut, phases, stride)
    part = shard.result_shape()[dim]
    return WindowFetcher(cut, dim, part).fetch(value, held, [position * part for position in range(cut.parts)])


def _strided(value: Value, cut: Cut, phases: Sequence[int | None], stride: int) -> Value:
    """Return each element of a certain distance, from a place on that differs between parts."""
    writer, dim = Writer(cut.shard.emit, cut.shard.ops), cut.dim
    known = [phase for phase in phases if phase is not None]
    common = known[0]
    if len(set(known)) > 1:
        length = value.shape[dim]
        table = [common if phase is None else phase for phase in phases]
        value = writer.part(writer.padded(value, dim, 0, stride - 1), dim, cut.by_device(table), length)
        common = 0
    return writer.sliced(value, dim, common, value.shape[dim], stride)


def _count(start: int, limit: int, stride: int) -> int:
    return max(0, -(-(limit - start) // stride))


FORMS = {
    "stablehlo.slice": localize_slice,
    "stablehlo.reverse": localize_reverse,
    "stablehlo.concatenate": localize_concatenate,
}
