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


def test_scalars_of_every_thread_are_no_reason_to_warn() -> None:
    """Each thread clamps the start of a slice by itself; a sum that each thread computes is another matter."""
    text = """
func.func @main(%x: tensor<128xf32>, %i: tensor<i32>) -> tensor<64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %size = stablehlo.constant dense<128> : tensor<i32>
  %float = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.compare LT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %from = stablehlo.add %i, %size : tensor<i32>
  %wrapped = stablehlo.select %least, %from, %i : tensor<i1>, tensor<i32>
  %near = stablehlo.minimum %wrapped, %size : tensor<i32>
  %past = stablehlo.maximum %near, %zero : tensor<i32>
  %twice = stablehlo.add %past, %past : tensor<i32>
  %half = stablehlo.divide %twice, %size : tensor<i32>
  %at = stablehlo.subtract %past, %half : tensor<i32>
  %s = stablehlo.reduce(%x init: %float) applies stablehlo.add across dimensions = [0]
      : (tensor<128xf32>, tensor<f32>) -> tensor<f32>
  %sum = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<64xf32>
  %0 = stablehlo.dynamic_slice %x, %at, sizes = [64] : (tensor<128xf32>, tensor<i32>) -> tensor<64xf32>
  %1 = stablehlo.add %0, %{other} : tensor<64xf32>
  return %1 : tensor<64xf32>
}}"""
    scalars = emit(fusion_of(text.format(other="0")))
    assert recomputation(scalars).factor > 4
    assert recompute_warning(scalars) is None
    assert recompute_warning(emit(fusion_of(text.format(other="sum")))) is not None


def test_an_update_in_place_moves_the_update_only() -> None:
    """The rest of the parameter stays where it is."""
    assert least_bytes(emit(fusion_of(UPDATE))) == (5 * 6 * 4 + 4, 5 * 6 * 4)
