"""Windows over a dimension with gaps between its elements, as in padding and in windows with a base dilation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from attrs import evolve

from shardy_dialects.stablehlo.attributes import dense_of, integers_of
from shardy_dialects.stablehlo.local.literals import dense
from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.attributes import Attribute, DenseElements
from shardy_py.ir.graph.program import Op, Value
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


@frozen
class DimensionWindows:
    """The windows along one dimension.

    Args:
        size: The number of elements of a window.
        stride: The distance of two windows.
        dilation: The distance of two elements of a window.
        base_dilation: The distance of two elements of the operand.
        low: The padding before the first element.
        high: The padding behind the last one.
        is_reversed: Whether the elements of a window are taken from its end.
    """

    size: int
    stride: int = 1
    dilation: int = 1
    base_dilation: int = 1
    low: int = 0
    high: int = 0
    is_reversed: bool = False

    @property
    def is_trivial(self) -> bool:
        """True if windows are the elements in their order."""
        return (self.size, self.stride, self.base_dilation, self.low, self.high) == (1, 1, 1, 0, 0)

    @property
    def leaves_operand(self) -> bool:
        """True if windows have places without an element: before the first one, behind the last one, or between two."""
        return self.base_dilation > 1 or self.low > 0 or self.high > 0

    def footprint(self, parts: int, part: int) -> DilatedReads:
        """Return the elements of the operand that each part reads.

        Args:
            parts: The number of parts.
            part: The number of windows of each part.
        """
        starts = [position * part * self.stride - self.low for position in range(parts)]
        size = (part - 1) * self.stride + (self.size - 1) * self.dilation + 1
        return DilatedReads(starts, size, self.base_dilation)

    def over(self, fetched: Fetched) -> DimensionWindows:
        """Return the windows over the elements that a device has."""
        return evolve(self, low=fetched.low, high=fetched.high, base_dilation=fetched.step)


def read_windows(op: Op, sizes: Sequence[int], base: str, dilations: str) -> list[DimensionWindows]:
    """Return the windows of an op.

    Args:
        op: The op.
        sizes: The sizes of a window.
        base: The name of the attribute with the distances of the elements of the operand.
        dilations: The name of the attribute with those of the elements of a window.
    """
    rank = len(sizes)
    strides, bases, steps = (_numbers(op, name, rank) for name in ("window_strides", base, dilations))
    flips = _numbers(op, "window_reversal", rank, default=0)
    padding_elements = dense_of(op, "padding")
    padding = [0] * (2 * rank) if padding_elements is None else list(padding_elements.values)
    if len(padding) == 1:
        padding *= 2 * rank
    return [
        DimensionWindows(
            size=size,
            stride=strides[number],
            dilation=steps[number],
            base_dilation=bases[number],
            low=padding[2 * number],
            high=padding[2 * number + 1],
            is_reversed=bool(flips[number]),
        )
        for number, size in enumerate(sizes)
    ]


def window_changes(windows: Sequence[DimensionWindows], base: str) -> dict[str, Attribute]:
    """Return the attributes of an op for the windows of a device.

    Args:
        windows: The windows.
        base: The name of the attribute with the distances of the elements of the operand.
    """
    padding = [(window.low, window.high) for window in windows]
    return {
        # As a frontend reads it, for those who count in the local program.
        "padding": DenseElements((len(padding), 2), tuple(chain.from_iterable(padding)), str(dense(padding))),
        base: tuple(window.base_dilation for window in windows),
    }


def _numbers(op: Op, name: str, rank: int, default: int = 1) -> Sequence[int]:
    return integers_of(op, name) or [default] * rank
