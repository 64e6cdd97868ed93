"""Kernels of the loop emitter before any pass."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from shardy_py.errors import ParseError, UnsupportedError
from shardy_py.kernels import emit, read_fusion
from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.entries import loop_entry
from shardy_py.kernels.fusion.choose import choose
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.kernels.partition import partition
from shardy_py.layout.numpy_arrays import numpy_dtype
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, fusion_of


def kernel(text: str) -> ModuleOp:
    """The module of a loop kernel."""
    fusion = fusion_of(text)
    choice = choose(fusion, H100)
    functions = FunctionEmitter(fusion, partition(fusion, choice))
    module = ModuleOp([loop_entry(functions, launch_of(fusion, choice, H100)), *functions.functions()])
    module.verify()
    return module


def test_an_entry_function_covers_all_elements() -> None:
    """The entry function loops over its elements, calls the function of the root and inserts what it gives."""
    text = print_kernel_module(kernel(NEGATE.format(shape="300")))
    assert "gpu.thread_id x {xla.range = [0 : index, 127 : index]}" in text
    assert "bl_x * 128 + th_x in [0, 299]" in text
    assert "tensor.insert" in text
    assert "llvm.dereferenceable = 1200 : index, xla.slice_index = 1 : index" in text


def test_functions_call_each_other() -> None:
    """A value that is read at two indices is computed by a function of its own."""
    text = print_kernel_module(kernel(LOG_TRANSPOSE_ADD.format(n=9)))
    assert text.count("func.func private") == 2
    assert text.count("xla_gpu.pure_call") == 3


@pytest.mark.parametrize("spelling", ["xla_gpu", "xla"])
@pytest.mark.parametrize("generic", [False, True])
def test_text_reads_back(spelling: str, generic: bool) -> None:
    """A module that is printed in either spelling, or in generic form, is the same module when it is read."""
    module = kernel(LOG_TRANSPOSE_ADD.format(n=9))
    text = print_kernel_module(module, spelling=spelling, generic=generic)
    assert ("xla.loop" in text) == (spelling == "xla")
    assert print_kernel_module(parse_kernel_module(text)) == print_kernel_module(module)


def test_all_ops_of_the_dialect_read_back() -> None:
    """Each op of the dialect has a text form that gives it back."""
    text = """builtin.module {
  func.func @main(%t: tensor<8x16xf32>, %c: i1, %x: f32, %i: index) -> tensor<8x16xf32> {
    %s = xla_gpu.allocate_shared : tensor<32x33xf32>
    %y = xla_gpu.sync_threads %s : tensor<32x33xf32>
    %z = xla_gpu.shuffle_reduce(%x) to 16 combiner=@g : f32
    %p = xla_gpu.predicated_insert %z into %t[%i, %i] if %c : tensor<8x16xf32>
    %q = xla_gpu.predicated_extract %t[%i, %i] if %c else %x : tensor<8x16xf32>
    %w = xla_gpu.atomic_rmw %p[%i, %i] : tensor<8x16xf32> {
    ^bb0(%cur: f32):
      %sum = arith.addf %cur, %q : f32
      xla_gpu.yield %sum : f32
    }
    gpu.barrier
    func.return %w : tensor<8x16xf32>
  }
}
"""
    module = parse_kernel_module(text)
    module.verify()
    assert print_kernel_module(module).split() == text.split()


@pytest.mark.parametrize("body", ["xla_gpu.loop", "%0 = arith.constant 0 : index %1 = arith.addf %0, %0 : index"])
def test_text_that_is_no_kernel_is_refused(body: str) -> None:
    """Text that cannot be read, or whose ops do not take their types, is one error."""
    with pytest.raises(ParseError, match="malformed-kernel"):
        parse_kernel_module(f"func.func @main() {{ {body} }}")


def test_ops_without_a_body_are_refused() -> None:
    """An op that says nothing about single elements cannot be in a kernel."""
    text = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}"""
    with pytest.raises(UnsupportedError, match="no-emission"):
        kernel(text)


def test_constants_of_one_number() -> None:
    """A constant that is one number for all of very many elements is a scalar, and is never spread."""
    text = """
func.func @main(%x: tensor<100000x100000xf32>) -> tensor<100000x100000xf32> {
  %0 = stablehlo.constant dense<{number}> : tensor<100000x100000xf32>
  %1 = stablehlo.add %x, %0 : tensor<100000x100000xf32>
  return %1 : tensor<100000x100000xf32>
}"""
    assert "arith.constant 2.500000e+00 : f32" in print_kernel_module(kernel(text.replace("{number}", "2.5")))


@pytest.mark.parametrize(
    ("dtype", "infinity"), [("f32", "0xFF800000"), ("bf16", "0xFF80"), ("f16", "0xFC00"), ("f64", "0xFFF0000000000000")]
)
def test_infinity(dtype: str, infinity: str) -> None:
    """Numbers that MLIR writes as bits keep their bits, alone and among others."""
    text = """
func.func @main(%x: tensor<2xT>) -> tensor<2xT> {
  %0 = stablehlo.constant dense<BITS> : tensor<2xT>
  %1 = stablehlo.maximum %x, %0 : tensor<2xT>
  return %1 : tensor<2xT>
}""".replace("xT>", f"x{dtype}>")
    x = np.array([-3e4, -np.inf]).astype(numpy_dtype(dtype))
    (alone,) = emit(read_fusion(text.replace("BITS", infinity))).run(x)
    (among,) = emit(read_fusion(text.replace("BITS", f"[-2.5, {infinity}]"))).run(x)
    assert (alone == x).all()
    assert among.astype(np.float64).tolist() == [-2.5, -np.inf]


@pytest.mark.parametrize(("operand", "result"), [("i8", "i32"), ("bf16", "f32"), ("f32", "bf16"), ("ui8", "i32")])
def test_products_of_other_types(operand: str, result: str) -> None:
    """Factors of a product are taken to the type in which it is summed."""
    text = f"""
    func.func @main(%x: tensor<3x5x{operand}>, %y: tensor<5x2x{operand}>) -> tensor<3x2x{result}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
          : (tensor<3x5x{operand}>, tensor<5x2x{operand}>) -> tensor<3x2x{result}>
      return %0 : tensor<3x2x{result}>
    }}"""
    x, y = (np.arange(shape[0] * shape[1]).reshape(shape) + 200 * (operand == "ui8") for shape in ((3, 5), (5, 2)))
    (actual,) = emit(fusion_of(text)).run(x.astype(numpy_dtype(operand)), y.astype(numpy_dtype(operand)))
    np.testing.assert_array_equal(actual.astype(np.int64), x @ y)


@pytest.mark.parametrize(("low", "interior"), [(2, 0), (2, 1), (-2, 0)])
def test_padding_in_the_place_of_all_elements(low: int, interior: int) -> None:
    """Nothing is read where what is padded is cut off again as a whole."""
    high = 3 if low < 0 else -1
    kernel = emit(
        fusion_of(f"""
        func.func @main(%x: tensor<1xf32>) -> tensor<2xf32> {{
          %cst = stablehlo.constant dense<3.0> : tensor<f32>
          %0 = stablehlo.pad %x, %cst, low = [{low}], high = [{high}], interior = [{interior}]
              : (tensor<1xf32>, tensor<f32>) -> tensor<2xf32>
          return %0 : tensor<2xf32>
        }}""")
    )
    for stage in ("initial", "flatten-tensors"):
        np.testing.assert_array_equal(kernel.run(np.ones(1, np.float32), stage=stage)[0], [3, 3])


def test_windows_of_padding_alone() -> None:
    """They give what the reduction starts from."""
    kernel = emit(
        fusion_of("""
        func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
          %cst = stablehlo.constant dense<2.0> : tensor<f32>
          %0 = "stablehlo.reduce_window"(%x, %cst) <{window_dimensions = array<i64: 1>,
              window_strides = array<i64: 3>, padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %sum = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %sum : tensor<f32>
          }) : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
          return %0 : tensor<1xf32>
        }""")
    )
    for stage in ("initial", "flatten-tensors"):
        np.testing.assert_array_equal(kernel.run(np.ones(1, np.float32), stage=stage)[0], [2])
