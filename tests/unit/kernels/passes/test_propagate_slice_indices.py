"""What functions know of the buffers that they take."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.passes.buffer_facts import PropagateSliceIndices
from tests.unit.kernels.module_texts import after

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
    found = after(TEXT.replace("SECOND", second), PropagateSliceIndices())
    return next(line for line in found.splitlines() if "@inner(" in line and "func.func" in line)


def test_callers_that_agree() -> None:
    """A function knows the buffer that all callers pass, also through other functions; other attributes stay."""
    assert "xla.slice_index = 0 : index, xla.invariant" in inner("%x")
    assert "xla.range = [0 : index, 3 : index]" in after(TEXT.replace("SECOND", "%x"), PropagateSliceIndices())


def test_callers_that_do_not_agree() -> None:
    """Of different buffers only what they have in common is known."""
    line = inner("%y")
    assert "xla.slice_index" not in line
    assert "xla.invariant" in line
