"""Windows that slide over tensors, for reductions and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.program import array
from shardy_py.values import frozen


@frozen
class GeneratedWindows:
    """The windows along one dimension.

    Args:
        size: The number of elements of a window.
        stride: The distance of two windows.
        low: The padding before the first element; negative where elements are left out.
        high: The padding behind the last one.
        base: The distance of two elements of the operand.
        dilation: The distance of two elements of a window.
    """

    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def is_only_dilated(self) -> bool:
        """True for a base dilation alone: the reference lets the factor pass through there, which it must not."""
        return self.base > 1 and (self.size, self.stride, self.low, self.high) == (1, 1, 0, 0)

    def count(self, size: int) -> int:
        """Return the number of windows over a dimension of that size."""
        padded = (size - 1) * self.base + 1 + self.low + self.high
        return max(0, (padded - (self.size - 1) * self.dilation - 1) // self.stride + 1)


def random_window(choices: Choices, size: int, widths: Sequence[int], *, dilated: bool = True) -> GeneratedWindows:
    """Return windows over a dimension of a positive size, of which one fits at least.

    Args:
        choices: Where the decisions come from.
        size: The size of the dimension.
        widths: The sizes that a window may have.
        dilated: Whether elements may be apart, or be left out by negative padding.
    """

    def sometimes(percent: int, numbers: Sequence[int], usual: int) -> int:
        return choices.pick(numbers) if choices.chance(percent) else usual

    edges = (1, 0, -1, 2) if dilated else (1, 0, 2)
    window = GeneratedWindows(
        size=sometimes(50, widths, 1),
        stride=sometimes(40, (1, 2, 3), 1),
        low=sometimes(30, edges, 0),
        high=sometimes(30, edges, 0),
        base=sometimes(12 * dilated, (2, 3), 1),
        dilation=sometimes(20 * dilated, (2, 3), 1),
    )
    return GeneratedWindows() if window.is_only_dilated or window.count(size) < 1 else window


def window_attributes(windows: Sequence[GeneratedWindows], base: str, dilation: str) -> dict[str, str]:
    """Return the strides, the padding and the distances as attributes.

    Args:
        windows: The windows along each dimension.
        base: The name of the attribute with the distances of the elements of the operand.
        dilation: The name of the attribute with those of the elements of a window.
    """
    attributes = {"window_strides": array(window.stride for window in windows)}
    if windows:
        pads = [[window.low, window.high] for window in windows]
        attributes["padding"] = f"dense<{pads}> : tensor<{len(windows)}x2xi64>"
    if any(window.base > 1 for window in windows):
        attributes[base] = array(window.base for window in windows)
    if any(window.dilation > 1 for window in windows):
        attributes[dilation] = array(window.dilation for window in windows)
    return attributes
