"""Slices of one tensor that are joined again, as in a rotation: elements move once, from the tensor to the result."""

from __future__ import annotations

from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard
from shardy_py.sharding.shard_moves import Run, own_runs
from shardy_py.values import frozen

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
        own = own_runs(self.size, self.cut.parts, self.value.shape[dim])
        held = [[run for one in runs for run in self._taken(one)] for runs in own]
        starts = [position * part for position in range(self.cut.parts)]
        result = WindowFetcher(self.cut, dim, part).fetch(self.value, held, starts)
        for whole, local in zip(shard.op.operands, shard.operands, strict=True):
            if all(user is shard.op for user, _ in whole.uses):
                _erase_unused(shard, local, self.value)
        return result

    def _taken(self, run: Run) -> list[Run]:
        """Return where the elements of a run go; an element may be in several operands."""
        found, shift = [], 0
        for start, operand in zip(self.starts, self.cut.shard.op.operands, strict=True):
            size = operand.shape[self.cut.dim]
            low, high = max(run.start, start), min(run.start + run.size, start + size)
            if low < high:
                found.append(Run(shift + low - start, high - low, run.place + low - run.start))
            shift += size
        return found


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
    (whole,) = values.values()
    local, sharding = shard.local_of(whole) or (whole, None)
    if sharding is None or sharding.rank != cut.sharding.rank:
        return None
    rank = range(cut.sharding.rank)
    if any(shard.positions(sharding, dim) != shard.positions(cut.sharding, dim) for dim in rank):
        return None
    return RotationSource(local, whole.shape[cut.dim], tuple(start for _, start in parts), cut)


def _part_of(value: Value, dim: int) -> tuple[Value, int]:
    """Return the tensor that a value is a part of along a dimension, and where it begins; the value itself else."""
    made = value.defining_op
    if made is None or made.name != _SLICE:
        return value, 0
    whole, starts, strides = made.operands[0], made.attributes["start_indices"], made.attributes["strides"]
    sizes = zip(whole.shape, value.shape, strict=True)
    if strides[dim] != 1 or any(size != taken for number, (size, taken) in enumerate(sizes) if number != dim):
        return value, 0
    return whole, int(starts[dim])


def _erase_unused(shard: Shard, value: Value, kept: Value) -> None:
    """Erase the ops of the device that made a value that nothing uses, up to another value."""
    made = value.defining_op
    if value is kept or made is None or made.parent is not shard.emit.block or any(item.uses for item in made.results):
        return
    operands = list(made.operands)
    made.erase()
    for operand in operands:
        _erase_unused(shard, operand, kept)
