"""Types and constants as LLVM writes them."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

from xdsl.dialects import builtin, llvm

from shardy_py.errors import UnsupportedError
from shardy_py.kernels.lower.literals import HOST, constant_text, float_text, nvptx, type_text

DEVICE = nvptx(has_libdevice=False)


def test_floats_are_written_by_their_bits() -> None:
    """f32 is written as the double of the same value; bf16 is an integer where the processor has none."""
    assert float_text(1.0, builtin.f32, DEVICE) == "0x3FF0000000000000"
    assert float_text(1.0, builtin.bf16, DEVICE) == "0xR3F80"
    assert float_text(1.0, builtin.bf16, HOST) == str(0x3F80)
    assert float_text(1.0, builtin.f16, HOST) == "0xH3C00"


def test_types() -> None:
    """Indices have the width of the module, pointers the space of the device, complex numbers two parts."""

    def texts(target: object) -> list[str]:
        types = (builtin.IndexType(), builtin.bf16, builtin.ComplexType(builtin.f32), llvm.LLVMPointerType())
        return [type_text(type_, target, 32) for type_ in types]  # type: ignore[arg-type]

    assert texts(DEVICE) == ["i32", "bfloat", "<2 x float>", "ptr addrspace(1)"]
    assert texts(HOST) == ["i32", "i16", "<2 x float>", "ptr"]
    with pytest.raises(UnsupportedError, match="LLVM has no type for"):
        type_text(builtin.NoneType(), HOST, 32)


def test_arrays_of_one_number() -> None:
    """A constant of equal elements is written out."""
    splat = builtin.DenseIntOrFPElementsAttr.from_list(builtin.TensorType(builtin.i32, [3]), [7])
    assert constant_text(splat, HOST, 32) == "[i32 7, i32 7, i32 7]"
    vector = builtin.DenseIntOrFPElementsAttr.from_list(builtin.VectorType(builtin.i1, [2]), [0, 1])
    assert constant_text(vector, HOST, 32) == "<i1 false, i1 true>"
