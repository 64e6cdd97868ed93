"""Programs without their shardings."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from shardy_py.jax.unsharded import without_shardings

PLAIN = """\
module {
  func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {jax.result_info = "y"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
    %0 = stablehlo.add %arg0, %cst : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'


def test_nothing_is_left_that_says_where_elements_are() -> None:
    """Meshes, annotations, constraints, reshards and groups go; donations, too, and what is computed stays."""
    text = (
        MESH
        + """
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>, tf.aliasing_output = 0 : i32})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>, jax.result_info = "y"}) {
  %c = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} dense<1.0> : tensor<8xf32>
  %0 = stablehlo.add %x, %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"b"}]> : tensor<8xf32>
  %3 = sdy.propagation_barrier %2 allowed_direction=NONE : tensor<8xf32>
  sdy.sharding_group %3 group_id=1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
"""
    )
    assert str(without_shardings(text)) == PLAIN


def test_manual_computations_keep_their_shardings() -> None:
    """A body that is written for one device of several needs the mesh, and nothing else does."""
    text = (
        MESH
        + """
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"}
      (%y: tensor<4xf32>) {
    %1 = stablehlo.tanh %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>} : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    )
    actual = str(without_shardings(text))
    assert "sdy.mesh @mesh" in actual
    assert 'in_shardings=[<@mesh, [{"a"}]>]' in actual
    assert '"b"}]' not in actual
