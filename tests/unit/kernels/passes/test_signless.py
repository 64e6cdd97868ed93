"""Types without a sign."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin

from shardy_py.kernels.passes.integer_types import Signless, signless
from tests.unit.kernels.module_texts import after


def test_signs_are_dropped_everywhere() -> None:
    """Arguments, results and values of functions have no sign; what is no integer stays."""
    text = """func.func @main(%x: tensor<4xui8>, %o: tensor<4xui8>, %i: index) -> tensor<4xui8> attributes {xla.entry} {
  %v = tensor.extract %x[%i] : tensor<4xui8>
  %r = tensor.insert %v into %o[%i] : tensor<4xui8>
  func.return %r : tensor<4xui8>
}"""
    found = after(text, Signless())
    assert "ui8" not in found
    assert found.count("tensor<4xi8>") >= 4


def test_a_layout_is_kept() -> None:
    """The layout of a tensor does not depend on its elements."""
    layout = builtin.DenseIntOrFPElementsAttr.from_list(builtin.TensorType(builtin.i64, [2]), [0, 1])
    unsigned = builtin.IntegerType(16, builtin.Signedness.UNSIGNED)
    found = signless(builtin.TensorType(unsigned, [2, 3], layout))
    assert found == builtin.TensorType(builtin.IntegerType(16), [2, 3], layout)
    assert signless(builtin.VectorType(unsigned, [4])) == builtin.VectorType(builtin.IntegerType(16), [4])
    assert signless(builtin.f32) == builtin.f32
