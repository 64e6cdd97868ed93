"""Tensors whose sizes are operands, as dynamic programs of torch-mlir and IREE have them."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy

FILLED = """
sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> tensor<?x8xf32> {
  %dim = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %size = tensor.dim %x, %dim : tensor<?x8xf32>
  %empty = tensor.empty(%size) : tensor<?x8xf32>
  %filled = "linalg.fill"(%one, %empty) <{operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%in: f32, %out: f32): "linalg.yield"(%in) : (f32) -> ()
  }) : (f32, tensor<?x8xf32>) -> tensor<?x8xf32>
  %sum = arith.addf %x, %filled : tensor<?x8xf32>
  return %sum : tensor<?x8xf32>
}
"""


def test_a_device_makes_tensors_of_the_sizes_of_shards() -> None:
    """The size of a sharded dimension is that of the shard times the parts, and an empty tensor takes a part of it."""
    local = sdy.propagate(FILLED).local()
    assert not local.warnings
    assert "arith.muli" in local.text
    assert "arith.divui" in local.text


def test_known_sizes_take_the_place_of_operands() -> None:
    """A tensor of known sizes has no operands."""
    text = sdy.propagate(FILLED, sizes={"?": 6}).text
    assert "tensor.empty() " in text


def test_the_cost_is_an_expression() -> None:
    """Each device has half of the rows."""
    assert str(sdy.propagate(FILLED).cost_expressions().quantities["argument_bytes"]) == "16*arg0.0"
