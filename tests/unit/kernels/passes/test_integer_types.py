"""The width of indices, and integers without a sign."""

from __future__ import annotations

import pytest
from xdsl.dialects import builtin

from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.passes.base import KernelContext
from shardy_py.kernels.passes.integer_types import ConvertIndexType, Signless, index_width, signless
from tests.unit.kernels.module_texts import after

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

TEXT = """func.func @main(%x: !llvm.ptr {{llvm.dereferenceable = {size} : index}}, %i: i64) attributes {{xla.entry}} {{
  %p = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
  func.return
}}"""


@pytest.mark.parametrize(
    ("size", "element", "width"),
    [(4 << 31, "f32", 32), ((4 << 31) + 4, "f32", 64), (4 << 31, "i16", 64), (1 << 31, "i8", 32)],
)
def test_indices_count_elements(size: int, element: str, width: int) -> None:
    """Indices have 32 bits unless a buffer has more elements than 2 to the 31."""
    module = parse_kernel_module(TEXT.format(size=size, element=element))
    ConvertIndexType().run(module, KernelContext())
    assert index_width(module) == width


def test_indices_are_wide_before() -> None:
    """A module that says nothing has indices of 64 bits."""
    assert index_width(parse_kernel_module(TEXT.format(size=16, element="f32"))) == 64


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")


def test_signs_are_dropped_everywhere() -> None:
    """Arguments, results and values of functions have no sign; what is no integer stays."""
    text = """func.func @main(%x: tensor<4xui8>, %o: tensor<4xui8>, %i: index) -> tensor<4xui8> attributes {xla.entry} {
  %v = tensor.extract %x[%i] : tensor<4xui8>
  %r = tensor.insert %v into %o[%i] : tensor<4xui8>
  func.return %r : tensor<4xui8>
}"""
    actual = after(text, Signless())
    assert "ui8" not in actual
    assert actual.count("tensor<4xi8>") >= 4


def test_a_layout_is_kept() -> None:
    """The layout of a tensor does not depend on its elements."""
    layout = builtin.DenseIntOrFPElementsAttr.from_list(builtin.TensorType(builtin.i64, [2]), [0, 1])
    unsigned = builtin.IntegerType(16, builtin.Signedness.UNSIGNED)
    actual = signless(builtin.TensorType(unsigned, [2, 3], layout))
    assert actual == builtin.TensorType(builtin.IntegerType(16), [2, 3], layout)
    assert signless(builtin.VectorType(unsigned, [4])) == builtin.VectorType(builtin.IntegerType(16), [4])
    assert signless(builtin.f32) == builtin.f32
