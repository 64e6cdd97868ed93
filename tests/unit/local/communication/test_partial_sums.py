"""Partial results that are combined late: after sums of several, and after loops that add them up."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from tests.unit.local.communication.sent_bytes import sent_bytes
from tests.unit.local.host_devices import compare

T = "tensor<8x8xf32>"
LONG, TALL = "tensor<8x16xf32>", "tensor<16x8xf32>"
LEFT = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
RIGHT = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
WHOLE = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
PRODUCT = "contracting_dims = [1] x [0]"
REDUCED = 2 * 3 / 4 * 256
"""The bytes of an all-reduce of an 8x8 tensor over 4 devices."""

TWO = f"""{MESH}func.func @main(%a: {LONG} {LEFT}, %b: {TALL} {RIGHT}, %c: {T} {WHOLE}) -> ({T} {WHOLE}) {{
  %0 = stablehlo.dot_general %a, %b, {PRODUCT} : ({LONG}, {TALL}) -> {T}
  %1 = stablehlo.tanh %a : {LONG}
  %2 = stablehlo.dot_general %1, %b, {PRODUCT} : ({LONG}, {TALL}) -> {T}
  %3 = stablehlo.multiply %2, %c : {T}
  %4 = stablehlo.subtract %0, %3 : {T}
  %5 = stablehlo.add %c, %4 : {T}
  return %5 : {T}
}}"""

LARGEST = f"""{MESH}func.func @main(%a: {LONG} {LEFT}) -> (tensor<8xf32>
    {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}}) {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] :
      ({LONG}, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.negate %a : {LONG}
  %2 = stablehlo.reduce(%1 init: %low) applies stablehlo.maximum across dimensions = [1] :
      ({LONG}, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.maximum %0, %2 : tensor<8xf32>
  return %3 : tensor<8xf32>
}}"""


def loop(trips: str, use: str = "", start: str = "%s") -> str:
    """Return a program that adds a product in each run of a loop, to what it is given."""
    state = f"%t = %start, %x = %a, %y = %b, %sum = {start}"
    return f"""{MESH}func.func @main(%a: {LONG} {LEFT}, %b: {TALL} {RIGHT}, %s: {T} {WHOLE}, %n: tensor<i32>)
    -> ({T} {WHOLE}) {{
  %start = stablehlo.constant dense<0> : tensor<i32>
  %limit = {trips} : tensor<i32>
  %r:4 = stablehlo.while({state}) : tensor<i32>, {LONG}, {TALL}, {T}
  cond {{
    %p = stablehlo.compare LT, %t, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %t, %one : tensor<i32>
    %z = stablehlo.tanh %x : {LONG}
    %p = stablehlo.dot_general %z, %y, {PRODUCT} : ({LONG}, {TALL}) -> {T}
    %q = stablehlo.add %sum, %p : {T}{use}
    stablehlo.return %next, %z, %y, %q : tensor<i32>, {LONG}, {TALL}, {T}
  }}
  return %r#3 : {T}
}}"""


def test_a_sum_of_products_is_reduced_once() -> None:
    """Also through a product with what is whole, and a difference."""
    result = sdy.propagate(TWO, explicit_collectives=True)
    assert sent_bytes(result.local(), result.registry) == REDUCED
    assert sent_bytes(result.local(reorder_sums=False), result.registry) == 2 * REDUCED


def test_the_larger_of_two_is_reduced_once() -> None:
    """Largest elements combine as sums do."""
    result = sdy.propagate(LARGEST, explicit_collectives=True)
    kinds = [item.kind for item in result.local().collectives]
    assert kinds == ["all_reduce"]
    assert [item.kind for item in result.local(optimize=False).collectives] == ["all_reduce"] * 2


def test_what_a_loop_adds_up_is_reduced_behind_it() -> None:
    """Once instead of in each run."""
    result = sdy.propagate(loop("stablehlo.constant dense<7>"), explicit_collectives=True)
    assert sent_bytes(result.local(), result.registry) == REDUCED
    assert sent_bytes(result.local(optimize=False), result.registry) == 7 * REDUCED


def test_a_sum_that_the_loop_reads_stays() -> None:
    """Each run needs the whole sum: its factors, which are smaller, are gathered before the loop."""
    use = f"\n    %unused = stablehlo.exponential %q : {T}".replace("%unused", "%w")
    text = loop("stablehlo.constant dense<7>", use).replace("%next, %z, %y, %q :", "%next, %z, %y, %w :")
    result = sdy.propagate(text, explicit_collectives=True)
    assert sent_bytes(result.local(), result.registry) == 2 * 3 * 128
    assert sent_bytes(result.local(optimize=False), result.registry) == 7 * REDUCED


@pytest.mark.slow
@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loops_of_any_length_are_right(trips: int) -> None:
    """The initial value counts once, also where nothing is added to it."""
    pytest.importorskip("jax", reason="programs run through XLA")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((8, 16), (16, 8), (8, 8))]
    # A number of runs that no constant tells.
    compare(loop("stablehlo.add %n, %start"), *arrays, np.int32(trips))
    compare(loop(f"stablehlo.constant dense<{trips}>"), *arrays, np.int32(0))


@pytest.mark.slow
@pytest.mark.parametrize("text", [TWO, LARGEST])
def test_results_are_those_of_one_device(text: str) -> None:
    """Within the rounding of sums in another order."""
    pytest.importorskip("jax", reason="programs run through XLA")
    shapes = [item.shape for item in sdy.propagate(text).main.regions[0].block.arguments]
    rng = np.random.default_rng(0)
    compare(text, *(rng.normal(size=shape).astype(np.float32) for shape in shapes))


@pytest.mark.slow
def test_integers_are_equal_bit_by_bit() -> None:
    """Sums of integers have no order."""
    pytest.importorskip("jax", reason="programs run through XLA")
    text = loop("stablehlo.constant dense<3>").replace("f32", "i32").replace("stablehlo.tanh", "stablehlo.negate")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-99, 99, shape).astype(np.int32) for shape in ((8, 16), (16, 8), (8, 8))]
    local = sdy.propagate(text, explicit_collectives=True).local()
    a, b, s = arrays
    expected = s + (-a) @ b + a @ b + (-a) @ b
    (actual,) = local.run(*arrays, np.int32(0))
    np.testing.assert_array_equal(actual, expected)
