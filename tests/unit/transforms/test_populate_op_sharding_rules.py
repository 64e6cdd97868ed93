"""Rules written on the ops."""

import pytest

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

from shardy_py.oracle.conformance import run

TEXT = """\
sdy.mesh @m = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_rules_are_written_on_ops_that_have_one():
    """A rule that is there already stays."""
    custom = "#sdy.op_sharding_rule<([i], [i])->([j]) {i=4, j=4}, custom>"
    text = TEXT.replace("%arg0, %arg0 :", f"%arg0, %arg0 {{sdy.sharding_rule = {custom}}} :")
    assert "sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=4}>" in run(
        TEXT, "sdy-populate-op-sharding-rules"
    )
    assert f"sdy.sharding_rule = {custom}" in run(text, "sdy-populate-op-sharding-rules")


def test_conservative_rules_leave_uneven_factors_out():
    """The option reaches the rules."""
    text = """func.func @main(%a: tensor<2x4xf32>) -> tensor<8xf32> {
      %0 = stablehlo.reshape %a : (tensor<2x4xf32>) -> tensor<8xf32>
      %1 = stablehlo.slice %0 [0:6] : (tensor<8xf32>) -> tensor<6xf32>
      return %0 : tensor<8xf32>
    }"""
    loose = run(text, "sdy-populate-op-sharding-rules")
    tight = run(text, "sdy-populate-op-sharding-rules{conservative-propagation=true}")
    assert loose != tight
    assert "sdy.sharding_rule" in tight
