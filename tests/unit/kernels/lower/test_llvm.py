"""Kernels and their constants as text for LLVM."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import builtin, llvm

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host, host_text
from shardy_py.kernels.lower.literals import HOST, constant_text, float_text, nvptx, type_text
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import parse

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

BRANCHES = """builtin.module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @main(%x: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 64 : index,
      xla.slice_index = 0 : index, xla.invariant, llvm.noalias},
      %o: !llvm.ptr {llvm.align = 256 : index, llvm.dereferenceable = 64 : index,
      xla.slice_index = 1 : index, llvm.noalias}) attributes {xla.entry} {
    %t = gpu.thread_id x {xla.range = [0 : index, 15 : index]}
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %start = arith.constant 0.0 : f32
    cf.br ^head(%zero, %start : index, f32)
  ^head(%i: index, %s: f32):
    %more = arith.cmpi sle, %i, %t : index
    cf.cond_br %more, ^body, ^done
  ^body:
    %p = arith.index_cast %i : index to i64
    %a = llvm.getelementptr inbounds %x[%p] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %a {invariant} : !llvm.ptr -> f32
    %two, %n = func.call @both(%s, %v) : (f32, f32) -> (f32, f32)
    %j = arith.addi %i, %one : index
    cf.br ^head(%j, %n : index, f32)
  ^done:
    %q = arith.index_cast %t : index to i64
    %b = llvm.getelementptr inbounds %o[%q] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %s, %b : f32, !llvm.ptr
    func.return
  }
  func.func private @both(%a: f32, %b: f32) -> (f32, f32) {
    %d = arith.subf %a, %b : f32
    %s = arith.addf %a, %b : f32
    func.return %d, %s : f32, f32
  }
}"""
LAUNCH = Launch((1, 1, 1), (16, 1, 1))


def test_the_text_of_a_device() -> None:
    """A kernel for a device knows its block, its buffers and the range of its ids; LLVM takes the text."""
    text = llvm_text(parse_kernel_module(BRANCHES), LAUNCH, nvptx(has_libdevice=False))
    assert "define ptx_kernel void @main(ptr addrspace(1) noalias align 16 dereferenceable(64) readonly %arg0" in text
    assert '"nvvm.reqntid"="16,1,1"' in text
    assert "call range(i32 0, 16) i32 @llvm.nvvm.read.ptx.sreg.tid.x()" in text
    assert text.count("!invariant.load !0") == 1
    assert text.count(" phi ") == 2
    assert "define internal {float, float} @both" in text
    parse(text)


def test_the_text_of_the_host() -> None:
    """For the host the entry function takes the ids and is run by loops; the rest is the same text."""
    text = host_text(parse_kernel_module(BRANCHES), LAUNCH)
    assert "i32 %thread.x" in text
    assert "llvm.nvvm" not in text
    assert "target" not in text
    parse(text)


def test_wide_indices() -> None:
    """Where indices have 64 bits, ids are widened to them."""
    module = parse_kernel_module(BRANCHES.replace("index = 32", "index = 64"))
    text = llvm_text(module, LAUNCH, nvptx(has_libdevice=False))
    assert "zext nneg i32" in text
    assert "icmp sle i64" in text
    parse(text)


def test_ops_without_instructions() -> None:
    """An op that an earlier pass lowers is an error that names it."""
    module = parse_kernel_module(
        """func.func @main(%x: tensor<4xf32>, %i: index) -> f32 attributes {xla.entry} {
  %v = tensor.extract %x[%i] : tensor<4xf32>
  func.return %v : f32
}"""
    )
    with pytest.raises(UnsupportedError, match="LLVM has no type for"):
        llvm_text(module, LAUNCH, nvptx(has_libdevice=False))
    module = parse_kernel_module(
        """func.func @main(%i: index) -> index attributes {xla.entry} {
  %r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 3]">(%i)
  func.return %r : index
}"""
    )
    with pytest.raises(UnsupportedError, match="no instructions of LLVM") as caught:
        llvm_text(module, LAUNCH, nvptx(has_libdevice=False))
    assert caught.value.diagnostics[0].op == "xla_gpu.apply_indexing"


def test_text_that_llvm_refuses() -> None:
    """A text that is no LLVM is an error with LLVM's words."""
    with pytest.raises(VerificationError, match="LLVM refuses the kernel"):
        parse("define void @f() { ret i32 0 }")


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

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


def with_root(name: str) -> str:
    """A kernel of sixteen threads whose sums go through a function that is defined elsewhere."""
    calls = BRANCHES.replace("    llvm.store %s", f"    %r = func.call @{name}(%s) : (f32) -> f32\n    llvm.store %r")
    return calls[: calls.rindex("}")] + f"  func.func private @{name}(f32) -> f32\n}}"


def test_a_function_without_a_body_is_declared() -> None:
    """LLVM is told the type of a function that is defined elsewhere; the host finds it in the C library."""
    text = llvm_text(parse_kernel_module(with_root("cbrtf")), LAUNCH, nvptx(has_libdevice=False))
    assert "declare float @cbrtf(float)" in text
    parse(text)
    x = np.arange(16, dtype=np.float32)
    (sums,) = compile_host(parse_kernel_module(BRANCHES), LAUNCH).run([x], [(x.shape, x.dtype)])
    (actual,) = compile_host(parse_kernel_module(with_root("cbrtf")), LAUNCH).run([x], [(x.shape, x.dtype)])
    np.testing.assert_allclose(actual, np.cbrt(sums), rtol=1e-6)
    assert actual[15] != sums[15]


def test_a_function_that_nobody_defines() -> None:
    """The host names the function that its process does not have."""
    with pytest.raises(VerificationError, match="calls what this process does not have"):
        compile_host(parse_kernel_module(with_root("of_nobody")), LAUNCH)
