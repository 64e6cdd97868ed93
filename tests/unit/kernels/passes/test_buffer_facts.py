"""Facts about buffers in called functions, and arguments that are the same memory."""

from __future__ import annotations

import numpy as np
import pytest

from shardy_py.kernels.passes.buffer_facts import MergePointers, PropagateSliceIndices
from shardy_py.kernels.passes.lower_tensors import LowerTensors
from tests.unit.kernels.module_texts import after, run

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

UPDATE = """func.func @main(%x: tensor<4xf32> {xla.slice_index = 0 : index},
    %y: tensor<4xf32> {xla.slice_index = 1 : index},
    %o: tensor<4xf32> {xla.slice_index = 0 : index}) -> tensor<4xf32> attributes {xla.entry} {
  %i = arith.constant 2 : index
  %v = tensor.extract %y[%i] : tensor<4xf32>
  %w = tensor.extract %x[%i] : tensor<4xf32>
  %s = arith.addf %v, %w : f32
  %r = tensor.insert %s into %o[%i] : tensor<4xf32>
  func.return %r : tensor<4xf32>
}"""


def test_one_argument_of_a_slice_is_used() -> None:
    """Of two arguments of one slice the first is used; each that is used points to memory of its own."""
    merged = after(UPDATE, LowerTensors(), MergePointers())
    (head,) = [line for line in merged.splitlines() if "@main" in line]
    assert head.count("!llvm.ptr") == 3
    assert head.count("llvm.noalias") == 2
    (unused,) = [name for name in ("%x", "%y", "%o") if merged.count(f"{name}: ") and merged.count(name) == 1]
    assert unused == "%o"
    x, y = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    for text in (UPDATE, merged):
        np.testing.assert_array_equal(run(text, x, y, slices=[0, 1, 0]), [0, 1, 12, 3])


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

TEXT = """func.func @main(%x: tensor<4xf32> {xla.slice_index = 0 : index, xla.invariant},
    %y: tensor<4xf32> {xla.slice_index = 1 : index, xla.invariant}, %i: index) -> f32 attributes {xla.entry} {
  %a = func.call @outer(%x, %i) : (tensor<4xf32>, index) -> f32
  %b = func.call @inner(SECOND, %i) : (tensor<4xf32>, index) -> f32
  %r = arith.addf %a, %b : f32
  func.return %r : f32
}
func.func private @outer(%x: tensor<4xf32>, %i: index {xla.range = [0 : index, 3 : index]}) -> f32 {
  %r = func.call @inner(%x, %i) : (tensor<4xf32>, index) -> f32
  func.return %r : f32
}
func.func private @inner(%x: tensor<4xf32>, %i: index) -> f32 {
  %r = tensor.extract %x[%i] : tensor<4xf32>
  func.return %r : f32
}"""


def inner(second: str) -> str:
    """The line of the inner function after the pass."""
    actual = after(TEXT.replace("SECOND", second), PropagateSliceIndices())
    return next(line for line in actual.splitlines() if "@inner(" in line and "func.func" in line)


def test_callers_that_agree() -> None:
    """A function knows the buffer that all callers pass, also through other functions; other attributes stay."""
    assert "xla.slice_index = 0 : index, xla.invariant" in inner("%x")
    assert "xla.range = [0 : index, 3 : index]" in after(TEXT.replace("SECOND", "%x"), PropagateSliceIndices())


def test_callers_that_do_not_agree() -> None:
    """Of different buffers only what they have in common is known."""
    line = inner("%y")
    assert "xla.slice_index" not in line
    assert "xla.invariant" in line
