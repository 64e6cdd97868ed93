"""Kernels that the library of XLA:CPU computes: reductions with the ops around them.

The numbers of bytes are those of XLA:CPU of jaxlib 0.10.2 for the same programs.
"""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

LARGE = 4 * 128 * 64
"""The bytes of a large tensor here."""
SMALL = 4 * 128
"""The bytes of a row, or of a column, of it."""


def _cost(body, arguments="%a: tensor<128x64xf32>", results="tensor<128x64xf32>", profile="xla-cpu"):
    text = f"""
func.func @main({arguments}) -> ({results}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  {body}
}}"""
    return Session.open(text).evaluate(profile=profile, partitioner="xla").cost


SUM = """%sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<128x64xf32>, tensor<f32>) -> tensor<128xf32>"""
LARGEST = SUM.replace("%sum", "%max").replace("%zero", "%low").replace(".add", ".maximum")
BROADCAST = "stablehlo.broadcast_in_dim {}, dims = [0] : (tensor<128xf32>) -> tensor<128x64xf32>"
SHIFTED = f"""
  {LARGEST}
  %lows = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<128xf32>
  %safe = stablehlo.maximum %lows, %max : tensor<128xf32>
  %rows = {BROADCAST.format("%safe")}
  %0 = stablehlo.subtract %a, %rows : tensor<128x64xf32>
  %1 = stablehlo.exponential %0 : tensor<128x64xf32>
  return %1 : tensor<128x64xf32>"""


def test_a_tensor_less_its_largest_elements_is_read_and_written_once():
    """A kernel goes on from the reduction to its only user, and so on; comparing with the least number is nothing."""
    cost = _cost(SHIFTED)
    assert cost.memory_traffic_bytes.value == 2 * LARGE
    assert cost.flops.value == 128 * 63 + 128 * 64


def test_no_library_computes_kernels_with_other_profiles():
    """The tensor is read for the reduction, and again with its result."""
    assert _cost(SHIFTED, profile="none").memory_traffic_bytes.value == pytest.approx(3 * LARGE + 2 * SMALL, abs=8)


def test_a_kernel_of_the_library_ends_in_a_broadcast_whose_user_it_lacks():
    """The broadcast sum is written, and read by the selection."""
    cost = _cost(
        f"""
  {SUM}
  %0 = {BROADCAST.format("%sum")}
  %1 = stablehlo.select %p, %0, %b : tensor<128x64xi1>, tensor<128x64xf32>
  return %1 : tensor<128x64xf32>""",
        "%a: tensor<128x64xf32>, %p: tensor<128x64xi1>, %b: tensor<128x64xf32>",
    )
    assert cost.memory_traffic_bytes.value == (2 + 3) * LARGE + LARGE // 4


def test_a_divisor_is_inverted_before_it_is_broadcast():
    """The sum is written; the quotient reads it and the dividend."""
    cost = _cost(
        f"""
  {SUM}
  %0 = {BROADCAST.format("%sum")}
  %1 = stablehlo.divide %b, %0 : tensor<128x64xf32>
  return %1 : tensor<128x64xf32>""",
        "%a: tensor<128x64xf32>, %b: tensor<128x64xf32>",
    )
    assert cost.memory_traffic_bytes.value == 3 * LARGE + 2 * SMALL


def test_what_a_kernel_of_the_library_shares_with_others_is_stored():
    """The sum of the arguments is read by the reduction of its squares and by a product, and computed once."""
    cost = _cost(
        """
  %s = stablehlo.add %a, %b : tensor<128x64xf32>
  %m = stablehlo.multiply %s, %s : tensor<128x64xf32>
  %0 = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<128x64xf32>, tensor<f32>) -> tensor<128xf32>
  %1 = stablehlo.multiply %s, %a : tensor<128x64xf32>
  return %0, %1 : tensor<128xf32>, tensor<128x64xf32>""",
        "%a: tensor<128x64xf32>, %b: tensor<128x64xf32>",
        "tensor<128xf32>, tensor<128x64xf32>",
    )
    assert cost.memory_traffic_bytes.value == (3 + 1 + 3) * LARGE + SMALL
    assert cost.flops.value == 3 * 128 * 64 + 128 * 63


def test_a_product_is_computed_with_the_largest_elements_of_its_rows():
    """Nothing is written but what the exponential makes."""
    cost = _cost(
        SHIFTED.replace("%a ", "%d ")
        .replace("%a,", "%d,")
        .replace(
            LARGEST.replace("%a", "%d"),
            f"""%d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<128x32xf32>, tensor<32x64xf32>) -> tensor<128x64xf32>
  {LARGEST.replace("%a", "%d")}""",
        ),
        "%x: tensor<128x32xf32>, %w: tensor<32x64xf32>",
    )
    assert cost.memory_traffic_bytes.value == LARGE + 4 * 32 * (128 + 64)


@pytest.mark.parametrize(("rows", "element_type"), [(32, "f32"), (128, "i32")])
def test_the_library_has_no_small_reductions_and_no_integers(rows, element_type):
    """They stay kernels of their own, and the tensor is read twice."""
    number = "0.0" if element_type == "f32" else "0"
    wide, narrow = f"tensor<{rows}x64x{element_type}>", f"tensor<{rows}x{element_type}>"
    cost = _cost(
        f"""
  %c = stablehlo.constant dense<{number}> : tensor<{element_type}>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]
    : ({wide}, tensor<{element_type}>) -> {narrow}
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : ({narrow}) -> {wide}
  %2 = stablehlo.subtract %a, %1 : {wide}
  return %2 : {wide}""",
        f"%a: {wide}",
        wide,
    )
    assert cost.memory_traffic_bytes.value == pytest.approx(4 * rows * (3 * 64 + 2), abs=8)
