"""Predicated accesses, reductions over lanes, calls and loops in other dialects and in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.inline import ConvertPureCalls
from shardy_py.kernels.passes.lower_tensors import LowerTensors
from shardy_py.kernels.passes.lower_to_scf import LowerToScf
from shardy_py.kernels.passes.scf_to_cf import ScfToCf
from tests.unit.kernels.module_texts import after, run
from tests.unit.kernels.passes.test_lower_tensors import NESTED

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

PREDICATED = """func.func @main(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %n = arith.constant 10 : index
  %z = arith.constant -1.0 : f32
  %c = arith.cmpi slt, %t, %n : index
  %v = xla_gpu.predicated_extract %x[%t] if %c else %z : tensor<64xf32>
  %always = arith.constant true
  %r = xla_gpu.predicated_insert %v into %o[%t] if %always : tensor<64xf32>
  func.return %r : tensor<64xf32>
}"""

LANES = """func.func @main(%x: tensor<32xf32>, %o: tensor<1xf32>) -> tensor<1xf32> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %z = arith.constant 0 : index
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %s = xla_gpu.shuffle_reduce(%v) to 16 combiner=@sum : f32
  %c = arith.cmpi eq, %t, %z : index
  %r = xla_gpu.predicated_insert %s into %o[%z] if %c : tensor<1xf32>
  func.return %r : tensor<1xf32>
}
func.func private @sum(%a: f32, %b: f32) -> f32 {
  %s = arith.addf %a, %b : f32
  func.return %s : f32
}"""


def test_predicates_become_branches() -> None:
    """Predicated accesses become branches that access the same elements; those that always hold need none."""
    launch = Launch((1, 1, 1), (64, 1, 1))
    x = np.arange(64, dtype=np.float32)
    lowered = after(PREDICATED, LowerToScf())
    assert "predicated" not in lowered
    assert lowered.count("scf.if") == 1
    expected = np.where(np.arange(64) < 10, x, -1)
    np.testing.assert_array_equal(run(lowered, x, launch=launch), expected)
    np.testing.assert_array_equal(run(PREDICATED, x, launch=launch), expected)


def test_lanes_are_combined_by_shuffles() -> None:
    """A reduction over 32 lanes is five shuffles, each followed by a call of the combiner; the sum is the same."""
    launch = Launch((1, 1, 1), (32, 1, 1))
    x = np.arange(32, dtype=np.float32)
    lowered = after(LANES, LowerToScf())
    assert lowered.count("gpu.shuffle") == lowered.count("call @sum") == 5
    assert run(lowered, x, like=np.zeros(1, np.float32), launch=launch) == [x.sum()]


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")


def test_branches_do_what_loops_did() -> None:
    """No loop and no condition is left, and the kernel writes what it wrote."""
    lowered = after(NESTED, LowerTensors(), ScfToCf())
    assert "scf." not in lowered
    assert "cf.cond_br" in lowered
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(lowered, x), run(NESTED, x))


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

CALL = """func.func @main(%x: tensor<64xf32>, %i: index) -> f32 attributes {xla.entry} {
  %v = xla_gpu.pure_call @element(%x, %i) : (tensor<64xf32>, index) -> f32
  func.return %v : f32
}
func.func private @element(%x: tensor<64xf32>, %i: index) -> f32 {
  %r = tensor.extract %x[%i] : tensor<64xf32>
  func.return %r : f32
}"""


def test_pure_calls_become_calls() -> None:
    """A pure call is a call of the same function with the same operands."""
    actual = after(CALL, ConvertPureCalls())
    assert "pure_call" not in actual
    assert "call @element(%x, %i) : (tensor<64xf32>, index) -> f32" in actual
