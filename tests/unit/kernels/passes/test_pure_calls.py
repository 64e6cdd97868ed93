"""Pure calls as ordinary calls."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.passes.inline import ConvertPureCalls
from tests.unit.kernels.module_texts import after

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
    found = after(CALL, ConvertPureCalls())
    assert "pure_call" not in found
    assert "call @element(%x, %i) : (tensor<64xf32>, index) -> f32" in found
