"""Advice for programs in which nothing is sharded yet."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy

NETWORK = """\
func.func @main(%x: tensor<64x512xbf16> {ARGUMENT}, %up: tensor<512x4096xbf16>, %down: tensor<4096x512xbf16>)
    -> tensor<64x512xbf16> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
      : (tensor<64x512xbf16>, tensor<512x4096xbf16>) -> tensor<64x4096xbf16>
  %1 = stablehlo.tanh %0 : tensor<64x4096xbf16>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0]
      : (tensor<64x4096xbf16>, tensor<4096x512xbf16>) -> tensor<64x512xbf16>
  return %2 : tensor<64x512xbf16>
}
"""


def test_weights_that_stay_whole_are_sharded_for_less_memory():
    """With no sharding at all the advice is about the inputs, and its figures are those after it."""
    advice = sdy.advise(NETWORK.replace("{ARGUMENT}", ""), {"model": 8}, machine="h100-8", minimise="memory")
    assert advice.inputs is not None
    assert '"model"' in advice.inputs.specs["arg1"]
    assert '"model"' in advice.inputs.specs["arg2"]
    assert advice.after.peak_bytes < advice.before.peak_bytes / 4
    assert "arg1: " in str(advice)


def test_shardings_that_a_user_gave_are_left_alone():
    """With a sharding of an argument the advice has no other shardings of inputs."""
    mesh = 'sdy.mesh @mesh = <["model"=8]>\n'
    text = mesh + NETWORK.replace("{ARGUMENT}", '{sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}')
    assert sdy.advise(text, machine="h100-8", minimise="memory").inputs is None
