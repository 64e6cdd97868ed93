"""Partial results that several devices hold are combined in parts."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from tests.unit.local.communication.sent_bytes import sent_bytes
from tests.unit.local.host_devices import compare

SIZE = 32 * 32 * 4
"""The bytes of a product."""


def product(mesh: str, target: str = "[{}, {}]", element: str = "f32") -> str:
    """Return a product whose contracted dimension is sharded along the first axis of a mesh.

    Args:
        mesh: The axes.
        target: The dimensions of the result's sharding.
        element: The element type.
    """
    tensor = f"tensor<32x32x{element}>"
    return f"""sdy.mesh @mesh = <[{mesh}]>
func.func @main(%a: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
    %b: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> ({tensor} {{sdy.sharding = #sdy.sharding<@mesh, {target}>}}) {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({tensor}, {tensor}) -> {tensor}
  return %0 : {tensor}
}}"""


MANUAL = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<1024x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {"x"}]>] out_shardings=[<@mesh, [{"y"}]>]
      manual_axes={"y"} (%c: tensor<512x32xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [1] :
        (tensor<512x32xf32>, tensor<f32>) -> tensor<512xf32>
    sdy.return %1 : tensor<512xf32>
  } : (tensor<1024x32xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}"""


@pytest.mark.parametrize(
    ("mesh", "target", "expected"),
    [
        # An all-reduce of a half between four devices, and the other half from the other device of two.
        ('"x"=4, "y"=2', "[{}, {}]", 2 * 3 / 4 * SIZE / 2 + SIZE / 2),
        ('"x"=4, "y"=2, "z"=2', "[{}, {}]", 2 * 3 / 4 * SIZE / 4 + 3 * SIZE / 4),
        # A reduce-scatter of a half, then a half of a fourth.
        ('"x"=4, "y"=2', '[{"x"}, {}]', 3 / 4 * SIZE / 2 + SIZE / 8),
        # The parts are what is asked for.
        ('"x"=4, "y"=2', '[{}, {"y"}]', 2 * 3 / 4 * SIZE / 2),
        # Between two devices it is as much, and three do not divide the sizes.
        ('"x"=2, "y"=4', "[{}, {}]", SIZE),
        ('"x"=4, "y"=3', "[{}, {}]", 2 * 3 / 4 * SIZE),
    ],
)
def test_bytes_are_those_of_the_parts(mesh: str, target: str, expected: float) -> None:
    """Never more than those of one collective on all."""
    result = sdy.propagate(product(mesh, target), explicit_collectives=True)
    assert sent_bytes(result.local(), result.registry) == expected


def test_devices_that_hold_other_values_do_not_share() -> None:
    """Along manual axes devices differ, though the shardings inside do not name these."""
    result = sdy.propagate(MANUAL, explicit_collectives=True)
    assert [item.kind for item in result.local().collectives] == ["all_reduce"]


LARGEST = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<2048x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = [1] :
      (tensor<2048x8xf32>, tensor<f32>) -> tensor<2048xf32>
  return %0 : tensor<2048xf32>
}"""


@pytest.mark.parametrize("combiner", ["maximum", "minimum", "add", "multiply"])
def test_parts_combine_as_the_whole_does(combiner: str) -> None:
    """A collective keeps its combiner, or stays as it is where no word says it."""
    text = LARGEST.replace("maximum", combiner).replace("0xFF800000", "1.0" if combiner == "multiply" else "0.0")
    local = sdy.propagate(text, explicit_collectives=True).local()
    reduced = next(op for op in local.program.functions["main"].walk() if op.name == "stablehlo.all_reduce")
    assert reduced.regions[0].block.first.name == f"stablehlo.{combiner}"
    kinds = [item.kind for item in local.collectives]
    assert kinds == (["all_reduce"] if combiner == "multiply" else ["all_reduce", "all_gather"])


@pytest.mark.slow
@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("target", ["[{}, {}]", '[{"x"}, {}]', '[{}, {"x"}]', '[{}, {"y"}]', '[{"y", "x"}, {}]'])
def test_results_are_those_of_one_device(target: str, element: str) -> None:
    """Whatever the result's sharding is."""
    pytest.importorskip("jax", reason="programs run through XLA")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, (32, 32)).astype("float32" if element == "f32" else "int32") for _ in range(2)]
    compare(product('"x"=4, "y"=2', target, element), *arrays)
