"""Data that a run records."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import trace_of

REDUCE = f"""func.func @main(%arg0: tensor<8x4xf32> {sharded('[{"a"}, {?}]')}) -> tensor<4xf32> {{
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


def test_the_combiners_of_reductions_are_recorded() -> None:
    """By step and factor; only for steps that reduce."""
    trace = trace_of(REDUCE)
    step = trace.labels.maker(trace.labels.slots["%0"])
    assert {one: set(words.values()) for one, words in trace.reductions.items()} == {step: {"max"}}


def test_the_ops_that_nobody_uses_are_known_to_be_gone() -> None:
    """Their steps are erased."""
    trace = trace_of(REDUCE)
    names = {trace.labels.of_step[step].name for step in trace.erased}
    assert names == {"stablehlo.negate"}
