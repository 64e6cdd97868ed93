"""The windows of an op, dimension by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.local.dilation import DilatedReads, Fetched
from shardy_dialects.stablehlo.local.texts import dense
from shardy_py.ir.graph.program import Op
from shardy_py.values import frozen


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
        """Return what each part reads of the operand.

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
    given = attribute(op, "padding")
    padding = [0] * (2 * rank) if given is None else list(given.values)
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


def window_changes(windows: Sequence[DimensionWindows], base: str) -> dict[str, Any]:
    """Return the attributes of an op for the windows of a device.

    Args:
        windows: The windows.
        base: The name of the attribute with the distances of the elements of the operand.
    """
    return {
        "padding": dense([(window.low, window.high) for window in windows]),
        base: tuple(window.base_dilation for window in windows),
    }


def _numbers(op: Op, name: str, rank: int, default: int = 1) -> Sequence[int]:
    given = attribute(op, name)
    return [default] * rank if given is None else [int(number) for number in given]
