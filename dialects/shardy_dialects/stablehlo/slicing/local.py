"""Local forms of slices and joining: elements that other devices need go there by permutes."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.exchanges import owners_of_slice
from shardy_dialects.stablehlo.local.spreading import spread_from
from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher, cut_dims, cut_of
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.shard_moves import Run, own_runs
from shardy_py.values import frozen


def localize_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of a slice that a device has, gathered along dimensions that the result is not sharded along."""
    limits = list(op.attributes["limit_indices"])
    starts, strides = list(op.attributes["start_indices"]), list(op.attributes["strides"])
    moved: list[tuple[Cut, int, int]] = []
    gathered_dims = [dim for dim in cut_dims(shard) if shard.parts(shard.result_shardings[0], dim) == 1]
    if gathered_dims:
        return _collected(op, shard, gathered_dims)
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


def _collected(op: Op, shard: Shard, dims: Sequence[int]) -> Combined:
    """Return a slice that one device of each group has, or a few, sent to all others.

    Args:
        op: The slice.
        shard: Its operand on the device.
        dims: The dimensions that are sharded in the operand, and whole in the result.

    Raises:
        CannotLocalize: too many devices have a part of it, or it takes a part of another sharded dimension.
    """
    sharding, shape = shard.operand_shardings[0], op.operands[0].shape
    if sharding is None or shard.is_resolved:
        raise no_local_form("the result is whole, and devices have parts of it")
    cuts = [Cut(shard, sharding, dim) for dim in dims]
    owners = [owners_of_slice(op, cut.dim, cut.parts) for cut in cuts]
    known = [item for item in owners if item is not None]
    if len(known) < len(cuts):
        raise no_local_form("the result is whole, and several devices have a part of it")
    starts, limits = list(op.attributes["start_indices"]), list(op.attributes["limit_indices"])
    for dim in cut_dims(shard):
        if dim not in dims:
            if (starts[dim], limits[dim], op.attributes["strides"][dim]) != (0, shape[dim], 1):
                raise no_local_form(f"dimension {dim} of the result is sharded and not taken whole")
            limits[dim] = shard.operands[0].shape[dim]
    return Combined([_gathered_pieces(op, shard, list(zip(cuts, known, strict=True)), starts, limits)])


def _gathered_pieces(
    op: Op, shard: Shard, cuts: Sequence[tuple[Cut, range]], starts: Sequence[int], limits: Sequence[int]
) -> Value:
    """Return the pieces of a slice that the owners of some dimensions have, sent to all and joined.

    Args:
        op: The slice.
        shard: Its operand on the device.
        cuts: The dimensions, each with the parts that have elements of the slice.
        starts: Where the slice begins, in what the device has of the other dimensions.
        limits: Where it ends.
    """
    if not cuts:
        rows = enumerate(zip(starts, limits, op.attributes["strides"], strict=True))
        sizes = {dim: _count(*row) for dim, row in rows}
        changes = {"start_indices": tuple(starts), "limit_indices": tuple(limits)}
        return shard.emit.op_like(op, shard.operands, [resized(shard.operands[0], sizes)], changes).result
    (cut, owners), *others = cuts
    part, pieces = shard.operands[0].shape[cut.dim], []
    for owner in owners:
        begins, ends = list(starts), list(limits)
        begins[cut.dim] = max(starts[cut.dim] - owner * part, 0)
        ends[cut.dim] = min(limits[cut.dim] - owner * part, part)
        pieces.append(spread_from(_gathered_pieces(op, shard, others, begins, ends), cut, owner))
    if len(pieces) == 1:
        return pieces[0]
    size = sum(piece.shape[cut.dim] for piece in pieces)
    joined = resized(pieces[0], {cut.dim: size})
    return shard.emit.op("stablehlo.concatenate", pieces, [joined], {"dimension": cut.dim}).result


def localize_concatenate(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the joined shards; where the joined dimension is sharded, elements move to the device that has them."""
    dim = int(op.attributes["dimension"])
    if dim not in cut_dims(shard):
        return shard.copy()
    if shard.is_resolved:
        raise no_local_form(f"dimension {dim} is sharded but the concatenation is on this dimension.")
    cut = cut_of(shard, dim)
    source = find_source(op, shard, cut)
    if source is not None:
        return [source.joined()]
    held: list[list[Run]] = [[] for _ in range(cut.parts)]
    shift = place = 0
    for number, local in enumerate(shard.operands):
        for runs, operand_runs in zip(held, cut.runs(number, shift=shift), strict=True):
            runs.extend(Run(run.start, run.size, run.place + place) for run in operand_runs)
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
        length = min(count - first, -(-(run.size - place) // stride))
        phases.append(place % stride if length > 0 else None)
        held.append([Run(first, length, place // stride)] if length > 0 else [])
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


_SLICE = "stablehlo.slice"


@frozen
class RotationSource:
    """A tensor of which all operands of a concatenation are parts, along the joined dimension.

    Args:
        value: What the device has of it.
        size: The size of the dimension.
        starts: Where each operand begins in it.
        cut: The joined dimension.
    """

    value: Value
    size: int
    starts: tuple[int, ...]
    cut: Cut

    def joined(self) -> Value:
        """Return the part of the device of the joined operands."""
        shard, dim = self.cut.shard, self.cut.dim
        part = shard.result_shape()[dim]
        runs_of_parts = own_runs(self.size, self.cut.parts, self.value.shape[dim])
        held = [[run for part_run in runs for run in self._destinations(part_run)] for runs in runs_of_parts]
        starts = [position * part for position in range(self.cut.parts)]
        result = WindowFetcher(self.cut, dim, part).fetch(self.value, held, starts)
        for operand, local in zip(shard.op.operands, shard.operands, strict=True):
            if all(user is shard.op for user, _ in operand.uses):
                _erase_unused(shard, local, self.value)
        return result

    def _destinations(self, run: Run) -> list[Run]:
        """Return the runs of the result that a run of the value goes to; an element may be in several operands."""
        runs, shift = [], 0
        for start, operand in zip(self.starts, self.cut.shard.op.operands, strict=True):
            size = operand.shape[self.cut.dim]
            low, high = max(run.start, start), min(run.start + run.size, start + size)
            if low < high:
                runs.append(Run(shift + low - start, high - low, run.place + low - run.start))
            shift += size
        return runs


def find_source(op: Op, shard: Shard, cut: Cut) -> RotationSource | None:
    """Return the tensor of which all operands of a concatenation are slices; None where it is sharded in another way.

    Args:
        op: The concatenation.
        shard: Its operands on the device.
        cut: The joined dimension of the result.
    """
    parts = [_part_of(value, cut.dim) for value in op.operands]
    values = {value.id: value for value, _ in parts}
    if len(values) != 1:
        return None
    (tensor,) = values.values()
    local, sharding = shard.local_of(tensor) or (tensor, None)
    if sharding is None or sharding.rank != cut.sharding.rank:
        return None
    rank = range(cut.sharding.rank)
    if any(shard.positions(sharding, dim) != shard.positions(cut.sharding, dim) for dim in rank):
        return None
    return RotationSource(local, tensor.shape[cut.dim], tuple(start for _, start in parts), cut)


def _part_of(value: Value, dim: int) -> tuple[Value, int]:
    """Return the tensor that a value is a part of along a dimension, and where it begins; the value itself else."""
    producer = value.defining_op
    if producer is None or producer.name != _SLICE:
        return value, 0
    tensor, starts, strides = producer.operands[0], producer.attributes["start_indices"], producer.attributes["strides"]
    sizes = zip(tensor.shape, value.shape, strict=True)
    if strides[dim] != 1 or any(size != value_size for number, (size, value_size) in enumerate(sizes) if number != dim):
        return value, 0
    return tensor, int(starts[dim])


def _erase_unused(shard: Shard, value: Value, last: Value) -> None:
    """Erase the ops of the device that made a value that nothing uses, up to another value."""
    producer = value.defining_op
    if (
        value is last
        or producer is None
        or producer.parent is not shard.emit.block
        or any(item.uses for item in producer.results)
    ):
        return
    operands = list(producer.operands)
    producer.erase()
    for operand in operands:
        _erase_unused(shard, operand, last)
