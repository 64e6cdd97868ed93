"""Passes of MLIR itself among those of the package."""

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


def test_generic_passes_run_between_ours():
    """Shardings survive canonicalization, and what it erases is gone."""
    text = TEXT.replace("  return", "  %1 = stablehlo.subtract %arg0, %arg0 : tensor<4xf32>\n  return").replace(
        "func.func", "func.func private @unused()\nfunc.func"
    )
    result = run(text, "sdy-basic-propagate,canonicalize,symbol-dce")
    assert "subtract" not in result
    assert "@unused" not in result
    assert 'stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", ?}]>]>}' in result
