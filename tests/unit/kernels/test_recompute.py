"""How often kernels compute the elements of their ops."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

from shardy_py.kernels import Kernel, emit
from shardy_py.kernels.reasons import explain
from shardy_py.kernels.recompute import least_bytes, recomputation, recompute_warning
from shardy_py.kernels.roofline import roofline
from tests.unit.kernels.fusions import fusion_of

SOFTMAX = """func.func @main(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<64x128xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %3 = stablehlo.divide %0, %2 : tensor<64x128xf32>
  return %3 : tensor<64x128xf32>
}"""
SUMS = """func.func @main(%x: tensor<1024x4096xf32>) -> tensor<1024xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<1024x4096xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<1024x4096xf32>, tensor<f32>) -> tensor<1024xf32>
  %2 = stablehlo.sqrt %1 : tensor<1024xf32>
  return %2 : tensor<1024xf32>
}"""


@pytest.fixture(scope="module")
def softmax() -> Kernel:
    """A softmax as one loop: each element of a row sums the row up again."""
    return emit(fusion_of(SOFTMAX))


def test_a_softmax_as_one_loop(softmax: Kernel) -> None:
    """Each of 128 elements of a row needs the sum of all, and its own exponential besides."""
    factors = {item.op.name.partition(".")[2]: item.factor for item in recomputation(softmax).ops}
    assert factors == {"reduce": 128, "exponential": 129}
    warning = recompute_warning(softmax)
    assert warning is not None
    assert "those of stablehlo.exponential 129 times" in warning.message
    assert least_bytes(softmax) == (32768, 32768)
    assert any(line.startswith("recompute: ") for line in explain(softmax))
    limits = roofline(softmax)
    assert (limits.operations, limits.bytes) == (64 * 128 * (129 + 128 + 1), 65536)
    assert limits.limit == "arithmetic"


def test_a_reduction_computes_once() -> None:
    """Threads that share a row combine each element once."""
    kernel = emit(fusion_of(SUMS))
    assert kernel.choice.name == "reduction"
    actual = recomputation(kernel)
    assert (actual.factor, actual.ops) == (1.0, ())
    assert recompute_warning(kernel) is None
    limits = roofline(kernel)
    assert limits.intensity == pytest.approx((2 * 4096 + 1) * 1024 / (4 * 4097 * 1024))
    assert limits.limit == "memory"


UPDATE = """func.func @main(%x: tensor<20x30xf32>, %u: tensor<5x6xf32>, %i: tensor<i32>) -> tensor<20x30xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
      : (tensor<20x30xf32>, tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<20x30xf32>
  return %0 : tensor<20x30xf32>
}"""


def test_an_update_in_place_moves_the_update_only() -> None:
    """The rest of the parameter stays where it is."""
    assert least_bytes(emit(fusion_of(UPDATE))) == (5 * 6 * 4 + 4, 5 * 6 * 4)
