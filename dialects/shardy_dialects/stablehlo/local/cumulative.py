"""Cumulative sums and their kin in parts: each device adds up its own elements, and what all parts before it come to.

The totals go around in rounds of doubling distance, instead of all elements to all devices behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_dialects.stablehlo.elementwise.ops import COMBINING
from shardy_dialects.stablehlo.local.footprints import DimensionWindows, window_changes
from shardy_dialects.stablehlo.local.windows import Cut, cut_of
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_dialects.stablehlo.regions import region_combiner
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.local import Shard
from shardy_py.values import frozen


def is_cumulative(window: DimensionWindows, size: int) -> bool:
    """Return whether windows hold all elements up to one, or all from one on.

    Args:
        window: The windows along one dimension.
        size: The size of the dimension.
    """
    steps = window.stride, window.dilation, window.base_dilation
    ends = sorted((window.low, window.high))
    return steps == (1, 1, 1) and window.size == size > 1 and ends == [0, size - 1]


def cumulated(op: Op, shard: Shard, windows: Sequence[DimensionWindows], dim: int) -> list[Value]:
    """Return the cumulative reduction of the part of the device.

    Args:
        op: The reduction, by a known combiner from neutral values.
        shard: It on the device.
        windows: Its windows.
        dim: The sharded dimension along which it is cumulative.
    """
    count, part = len(op.results), shard.operands[0].shape[dim]
    is_forward = windows[dim].low > 0
    ends = (part - 1, 0) if is_forward else (0, part - 1)
    local_windows = list(windows)
    local_windows[dim] = evolve(windows[dim], size=part, low=ends[0], high=ends[1])
    neutral = shard.operands[count:]
    # What is cumulated from the end begins with padding.
    operands = [shard.masked(number, [dim], neutral[number]) for number in range(count)]
    changes = {
        **window_changes(local_windows, "base_dilations"),
        "window_dimensions": tuple(window.size for window in local_windows),
    }
    types = [shard.result_type(number) for number in range(count)]
    results = shard.emit.op_like(op, [*operands, *neutral], types, changes, shard.regions()).results
    combiner = region_combiner(op)
    if combiner is None:
        raise ValueError("a cumulative reduction needs a known combiner")
    totals = _Totals(Writer(shard.emit, shard.ops), cut_of(shard, dim), COMBINING[combiner], is_forward=is_forward)
    return [totals.added(value, start) for value, start in zip(results, neutral, strict=True)]


@frozen(eq=False)
class _Totals:
    """The totals of the parts of a dimension.

    Args:
        writer: Where the ops go.
        cut: The dimension.
        combine: The name of the op that combines two elements.
        is_forward: Whether the parts before one count; otherwise those behind it.
    """

    writer: Writer
    cut: Cut
    combine: str
    is_forward: bool

    def added(self, value: Value, neutral: Value) -> Value:
        """Return what is cumulated in a part, with the totals of all parts before it."""
        dim, part = self.cut.dim, value.shape[self.cut.dim]
        last = part - 1 if self.is_forward else 0
        total = self.writer.sliced(value, dim, last, last + 1)
        nothing = self.writer.spread(neutral, resized(total, {}))
        before = self._shifted(total, 1, 0, nothing)
        distance = 1
        while distance < self.cut.parts - 1:
            # The first part has nothing before it, so that it need not send.
            before = self._op(self._shifted(before, distance, 1, nothing), before)
            distance *= 2
        other_dims = [number for number in range(len(value.shape)) if number != dim]
        row = self.writer.ops.reshape(self.writer.emit, before, [value.shape[number] for number in other_dims])
        return self._op(self.writer.spread(row, resized(value, {}), other_dims), value)

    def _shifted(self, value: Value, distance: int, first: int, nothing: Value) -> Value:
        """Return the value of the part at some distance, from the first sender on; nothing where there is none."""
        parts = self.cut.parts
        steps = [(source, source + distance) for source in range(first, parts - distance)]
        if not self.is_forward:
            steps = [(parts - 1 - source, parts - 1 - target) for source, target in steps]
        pairs = sorted((group[source], group[target]) for group in self.cut.groups for source, target in steps)
        arrived = self.writer.ops.collective_permute(self.writer.emit, value, pairs)
        targets = {target for _, target in steps}
        flags = self.cut.by_device([int(part in targets) for part in range(parts)])
        flag = self.writer.convert(self.writer.ops.offset(self.writer.emit, flags), "i1")
        mask = self.writer.spread(flag, tensor(*value.shape, dtype="i1"))
        return self.writer.emit.op("stablehlo.select", [mask, arrived, nothing], [value.type]).result

    def _op(self, left: Value, right: Value) -> Value:
        return self.writer.emit.op(self.combine, [left, right], [left.type]).result
