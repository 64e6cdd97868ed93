"""The work of decompositions, triangular systems and convolutions, against what XLA's analysis says of the same ops.

XLA's figures are those of jaxlib 0.10.2, with the trips of loops counted, for programs of one op.
"""

from __future__ import annotations

import random

import pytest

from shardy_dialects.stablehlo.convolution.cost import ConvolutionDim, sum_of_floors
from shardy_py.cost.session import Session

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

DIRECTIONS = ", ".join(
    ("left_side = {left}", "lower = true", "transpose_a = #stablehlo<transpose NO_TRANSPOSE>", "unit_diagonal = false")
)


def _cost(text, profile="xla-cpu"):
    return Session.open(text).evaluate(profile=profile, partitioner="xla").cost


def _cholesky(batch, n):
    matrix = f"tensor<{batch}x{n}x{n}xf32>"
    return f"""
func.func @main(%a: {matrix}) -> {matrix} {{
  %0 = stablehlo.cholesky %a, lower = true : {matrix}
  return %0 : {matrix}
}}"""


def _solve(batch, n, columns, left="true"):
    matrix = f"tensor<{batch}x{n}x{n}xf32>"
    sides = f"tensor<{batch}x{n}x{columns}xf32>" if left == "true" else f"tensor<{batch}x{columns}x{n}xf32>"
    return f"""
func.func @main(%a: {matrix}, %b: {sides}) -> {sides} {{
  %0 = "stablehlo.triangular_solve"(%a, %b) <{{{DIRECTIONS.format(left=left)}}}> : ({matrix}, {sides}) -> {sides}
  return %0 : {sides}
}}"""


def _qr(batch, m, n):
    matrix, vector = f"tensor<{batch}x{m}x{n}xf32>", f"tensor<{batch}x{min(m, n)}xf32>"
    return f"""
func.func @main(%a: {matrix}) -> ({matrix}, {vector}) {{
  %0:2 = stablehlo.custom_call @Qr(%a) {{backend_config = ""}} : ({matrix}) -> ({matrix}, {vector})
  return %0#0, %0#1 : {matrix}, {vector}
}}"""


def _householder(batch, m, n, vectors):
    matrix, vector = f"tensor<{batch}x{m}x{n}xf32>", f"tensor<{batch}x{vectors}xf32>"
    return f"""
func.func @main(%a: {matrix}, %t: {vector}) -> {matrix} {{
  %0 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%a, %t) {{backend_config = ""}}
    : ({matrix}, {vector}) -> {matrix}
  return %0 : {matrix}
}}"""


def _eigh(batch, n, is_sorted, sharding=""):
    matrix, vector = f"tensor<{batch}x{n}x{n}xf32>", f"tensor<{batch}x{n}xf32>"
    return f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: {matrix}{sharding}) -> ({matrix}, {vector}) {{
  %0:2 = stablehlo.custom_call @Eigh(%a) {{backend_config = "1,{is_sorted},100,1e-6"}}
    : ({matrix}) -> ({matrix}, {vector})
  return %0#0, %0#1 : {matrix}, {vector}
}}"""


@pytest.mark.parametrize(
    ("text", "flops", "transcendentals", "bytes_accessed"),
    [
        (_cholesky(1, 1), 2, 1, 8),
        (_cholesky(2, 64), 70271489, 128, 17416322),
        (_cholesky(1, 300), 1129443344, 300, 163196252),
        (_solve(5, 1, 4), 25, 0, 220),
        (_solve(2, 48, 4), 525215, 0, 1147616),
        (_solve(1, 160, 16), 9511167, 0, 19694192),
        (_solve(1, 160, 16, "false"), 9512703, 0, 19700336),
        (_solve(16, 16, 64), 307456, 0, 3340672),
        (_qr(2, 64, 64), 4921729, 256, 15128701),
        (_qr(1, 128, 16), 341601, 32, 1023885),
        (_qr(1, 140, 300), 47166456, 280, 76550148),
        (_householder(1, 128, 16, 16), 235697, 0, 122937),
        (_householder(2, 300, 140, 140), 81437830, 0, 22554638),
        (_eigh(1, 64, 1), 5750788, 4032, 16563826),
        (_eigh(3, 33, 0), 2564746, 3366, 7374464),
    ],
)
def test_an_expanded_op_counts_what_its_loops_do(text, flops, transcendentals, bytes_accessed):
    """Operations are within 5 % of XLA's, bytes within a quarter, transcendental operations the same."""
    cost = _cost(text)
    assert cost.flops.value == pytest.approx(flops, rel=0.05)
    assert cost.transcendentals.value == transcendentals
    assert cost.memory_traffic_bytes.value == pytest.approx(bytes_accessed, rel=0.25)


def test_other_backends_call_a_library():
    """HloCostAnalysis counts a third of the cube of the size, and two operations per element and row."""
    assert _cost(_cholesky(2, 64), "xla-gpu").flops.value == 2 * 64**3 / 3
    assert _cost(_solve(2, 48, 4), "none").flops.value == 2 * 48 * 2 * 48 * 4
    assert _cost(_solve(2, 48, 4, "false"), "none").flops.value == 2 * 48 * 2 * 48 * 4


def test_the_partitioner_gathers_matrices_for_calls_that_it_does_not_know():
    """Of 8 matrices each device has 2, and decomposes all."""
    sharding = ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}'
    cost = _cost(_eigh(8, 64, 1, sharding))
    assert cost.flops.value == _cost(_eigh(8, 64, 1)).flops.value
    assert ("all_gather", 3 * 2 * 64 * 64 * 4) in [(item.kind, item.bytes) for item in cost.transfers]
    assert _cost(_eigh(8, 64, 1, sharding), "none").flops.value < cost.flops.value / 3


def test_a_matrix_of_one_element_is_its_eigenvalue():
    """There is nothing to rotate, of any batch."""
    assert _cost(_eigh(3, 1, 1)).flops.value == 0


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
