"""The width of indices."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.passes.base import KernelContext
from shardy_py.kernels.passes.integer_types import ConvertIndexType, index_width

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
