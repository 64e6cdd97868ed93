"""Loops and branches that canonicalization puts their bodies in the place of."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.canonicalize import Canonicalize
from shardy_py.kernels.passes.loops import UnrollLoops, UnswitchLoops
from tests.unit.kernels.module_texts import after, run

NESTED = """func.func @main(%x: tensor<1xf32>, %o: tensor<1xf32>) -> tensor<1xf32> attributes {xla.entry} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %true = arith.constant true
  %r = scf.for %i = %zero to %one step %one iter_args(%a = %o) -> (tensor<1xf32>) {
    %0 = scf.if %true -> (tensor<1xf32>) {
      %1 = scf.if %true -> (tensor<1xf32>) {
        %v = tensor.extract %x[%i] : tensor<1xf32>
        %w = tensor.insert %v into %a[%i] : tensor<1xf32>
        scf.yield %w : tensor<1xf32>
      } else {
        scf.yield %a : tensor<1xf32>
      }
      scf.yield %1 : tensor<1xf32>
    } else {
      scf.yield %a : tensor<1xf32>
    }
    scf.yield %0 : tensor<1xf32>
  }
  func.return %r : tensor<1xf32>
}"""


def test_what_always_runs_once_needs_no_loop_and_no_branch() -> None:
    """A loop of one trip and branches in branches that are always taken leave their innermost body."""
    actual = after(NESTED, Canonicalize())
    assert "scf." not in actual
    x = np.array([3], np.float32)
    for text in (NESTED, actual):
        np.testing.assert_array_equal(run(text, x, launch=Launch((1, 1, 1), (1, 1, 1))), x)


TWO_LOOPS = """func.func @main(%x: f32, %c: i1) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 10 : index
  %r = scf.for %i = %zero to %many step %one iter_args(%a = %x) -> (f32) {
    %s = scf.for %j = %zero to %many step %one iter_args(%b = %a) -> (f32) {
      %0 = scf.if %c -> (f32) {
        %1 = xla_gpu.pure_call @f(%b) : (f32) -> f32
        scf.yield %1 : f32
      } else {
        scf.yield %b : f32
      }
      scf.yield %0 : f32
    }
    scf.yield %s : f32
  }
  func.return %r : f32
}
func.func private @f(%x: f32) -> f32 {
  func.return %x : f32
}"""


def test_a_condition_leaves_all_loops_around_it() -> None:
    """An invariant condition is checked once, before the outer loop."""
    actual = after(TWO_LOOPS, UnswitchLoops())
    assert actual.count("scf.if") == 1
    assert actual.index("scf.if") < actual.index("scf.for")


def test_loops_around_calls_without_effects_are_repeated() -> None:
    """Calls of functions that compute elements do not keep a loop from being unrolled."""
    assert after(TWO_LOOPS, UnswitchLoops(), UnrollLoops()).count("pure_call") == 100
