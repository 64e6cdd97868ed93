"""The products of a convolution are counted in closed form."""

from __future__ import annotations

import random

import pytest

from shardy_dialects.stablehlo.convolution.cost import ConvolutionDim, sum_of_floors


def count_one_by_one(dim: ConvolutionDim) -> int:
    """Return the pairs of a kernel and an output element that meet an element of the input, all looked at."""
    end = (dim.input_size - 1) * dim.input_dilation
    places = (
        output * dim.stride + kernel * dim.kernel_dilation - dim.low
        for kernel in range(dim.kernel_size)
        for output in range(dim.output_size)
    )
    return sum(0 <= place <= end and place % dim.input_dilation == 0 for place in places)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_that_are_found_one_by_one(seed: int) -> None:
    """Strides, padding of either sign and both dilations give the same number."""
    draw = random.Random(seed).randint
    for _ in range(500):
        sizes = draw(1, 9), draw(1, 6), draw(0, 9)
        dim = ConvolutionDim(*sizes, draw(1, 5), draw(-6, 9), draw(1, 7), draw(1, 5))
        assert dim.valid_pairs() == count_one_by_one(dim), dim


def test_large_sizes_are_counted_at_once() -> None:
    """A kernel without padding meets the input with each of its elements, at every output."""
    outputs, kernel = 10**15, 10**9
    assert ConvolutionDim(outputs + kernel - 1, kernel, outputs, 1, 0, 1, 1).valid_pairs() == outputs * kernel


def test_floors_are_summed() -> None:
    """The sum is that of the quotients, also of negative numbers."""
    draw = random.Random(5).randint
    for _ in range(500):
        count, divisor, slope, start = draw(0, 9), draw(1, 9), draw(-9, 9), draw(-20, 20)
        expected = sum((slope * i + start) // divisor for i in range(count))
        assert sum_of_floors(count, divisor, slope, start) == expected
