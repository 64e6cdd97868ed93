"""Windows over a dimension with gaps between its elements, as in padding and in windows with a base dilation."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Value
from shardy_py.sharding.shard_moves import Run
from shardy_py.values import frozen


@frozen
class DilatedReads:
    """The places that each part reads of a dimension; element x lies at place x times the step.

    Args:
        starts: The first place of each part.
        size: The number of places.
        step: The distance of two elements.
    """

    starts: Sequence[int]
    size: int
    step: int = 1

    @property
    def first_elements(self) -> list[int]:
        """The first element in the places of each part, or behind them."""
        return [-(-start // self.step) for start in self.starts]

    @property
    def count(self) -> int:
        """The largest number of elements that a part reads."""
        ends = ((start + self.size - 1) // self.step + 1 for start in self.starts)
        return max(0, *(end - first for first, end in zip(self.first_elements, ends, strict=True)))


@frozen
class Fetched:
    """Elements on a device, and the gaps that make the places of a footprint of them.

    Args:
        value: The elements.
        low: The places before the first one.
        high: The places behind the last one.
        step: The distance of two elements.
    """

    value: Value
    low: int
    high: int
    step: int


def fetch_footprint(
    cut: Cut, value: Value, dim: int, held: Sequence[Sequence[Run]], footprint: DilatedReads, fill: Value
) -> Fetched:
    """Return the elements of a footprint, from all devices that have some.

    Args:
        cut: The sharded dimension.
        value: What the device has.
        dim: The dimension of the value.
        held: Where the elements lie in it, for each part.
        footprint: The places.
        fill: The scalar outside of the dimension, and in gaps that are not the same for all parts.
    """
    writer = Writer(cut.shard.emit, cut.shard.ops)
    size, step = footprint.size, footprint.step
    firsts = footprint.first_elements
    if footprint.count == 0:
        return Fetched(writer.filled(value, dim, size, fill), 0, 0, 1)
    elements = WindowFetcher(cut, dim, footprint.count, fill).fetch(value, held, firsts)
    phases = [first * step - start for first, start in zip(firsts, footprint.starts, strict=True)]
    length = (footprint.count - 1) * step + 1
    if len(set(phases)) == 1:
        return Fetched(elements, phases[0], size - phases[0] - length, step)
    low, high = max(phases), max(0, size - length - min(phases))
    wide = writer.padded(elements, dim, low, high, interior=step - 1, fill=fill)
    table = cut.by_device([low - phase for phase in phases])
    return Fetched(writer.part(wide, dim, table, size), 0, 0, 1)


def with_gaps(fetched: Fetched, writer: Writer, dim: int, fill: Value) -> Value:
    """Return all places of a footprint, with a scalar in the gaps."""
    return writer.padded(fetched.value, dim, fetched.low, fetched.high, interior=fetched.step - 1, fill=fill)
