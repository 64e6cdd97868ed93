"""Manual computations on one device, and the values that enter or leave them.

In them, the parts along the manual axes are tensors of their own.

A part that does not divide along the other axes has padding of its own, in other places than outside: 12 elements over
2 x 4 devices are 8 parts of 2, but each half of 6 elements over 4 devices is 2, 2, 2 and 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import LocalEmitter, Shard
from shardy_py.local.regrid import AxesPerDim, Change, gather, slice_shard
from shardy_py.local.shard_table import ShardTable
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen


def inline(op: Op, table: ShardTable, emit: LocalEmitter, convert: Callable[[Op, LocalEmitter], None]) -> None:
    """Put the body of a manual computation in its place: outside, too, all is local now.

    Args:
        op: The manual computation.
        table: The values on the device.
        emit: Where ops go.
        convert: Adds the local form of an op of the body.
    """
    block, shard = op.regions[0].block, table.emitting_shard(op, emit)
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        table.shardings[argument.id] = table.program.sharding(argument)
        border = ManualBorder.between(shard, table, operand, argument)
        table.local[argument.id] = border.enter(table.local[operand.id])
    end = block.terminator
    for inner in block.ops:
        if inner is not end:
            convert(inner, emit)
    for result, value in zip(op.results, end.operands if end is not None else (), strict=True):
        table.local[result.id] = ManualBorder.between(shard, table, result, value).leave(table.local[value.id])


@frozen
class ManualBorder:
    """The border of a manual computation for one value.

    Args:
        shard: What emits ops.
        outer: The sharding outside.
        inner: The sharding inside, without manual axes.
        outer_shape: The shape outside.
        inner_shape: The shape inside.
    """

    shard: Shard
    outer: TensorSharding | None
    inner: TensorSharding | None
    outer_shape: Sequence[int]
    inner_shape: Sequence[int]

    @classmethod
    def between(cls, shard: Shard, table: ShardTable, outside: Value, inside: Value) -> ManualBorder:
        """Return the border between a value outside and one inside."""
        shapes = [static_shape(value.type) or () for value in (outside, inside)]
        return cls(shard, table.sharding(outside), table.sharding(inside), *shapes)

    def enter(self, value: Value) -> Value:
        """Return a value from outside as it is inside."""
        if not any(self._moved):
            return value
        value = gather(self.shard, value, self._change(self.outer_shape, outside=True), self._moved, one_by_one=False)
        return slice_shard(self.shard, value, self._change(self.inner_shape, outside=False, reverse=True), self._moved)

    def leave(self, value: Value) -> Value:
        """Return a value of the body with the shards that it has outside of it."""
        if not any(self._moved):
            return value
        value = gather(self.shard, value, self._change(self.inner_shape, outside=False), self._moved, one_by_one=False)
        return slice_shard(self.shard, value, self._change(self.outer_shape, outside=True, reverse=True), self._moved)

    @property
    def _moved(self) -> AxesPerDim:
        """The axes inside of the dimensions whose parts lie elsewhere outside."""
        if self.outer is None or self.inner is None:
            return [()] * len(self.outer_shape)
        mesh = self.shard.mesh(self.outer)
        result: list[tuple[AxisRef, ...]] = []
        for dim, size in enumerate(self.inner_shape):
            free = self.inner.of_dimension(dim).axes
            count, parts = axes_size(free, mesh), self.shard.parts(self.outer, dim)
            is_moved = 1 < count < parts and -(-self.outer_shape[dim] // parts) * count != size
            result.append(tuple(free) if is_moved else ())
        return result

    def _change(self, shape: Sequence[int], *, outside: bool, reverse: bool = False) -> Change:
        """Return the change in which the moved axes of a dimension are gathered, or the reverse of it."""
        change = Change.between(self.shard, shape, self.outer if outside else self.inner, None)
        pairs = zip(change.before, self._moved, strict=True)
        remaining_axes = [axes[: len(axes) - len(moved)] if moved else axes for axes, moved in pairs]
        if reverse:
            return Change(shape, change.mesh, remaining_axes, change.before)
        return Change(shape, change.mesh, change.before, remaining_axes)
