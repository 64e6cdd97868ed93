"""Tiles on the host: rows that devices rotate stay straight where nothing depends on it."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import builtin, func

from shardy_py.kernels import emit
from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host
from shardy_py.kernels.lower.host_loops import may_wrap
from shardy_py.kernels.lower.regroup import counted_loops
from shardy_py.kernels.lower.straight_tiles import straighten_tiles
from shardy_py.kernels.passes.base import functions
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.fusions import fusion_of
from tests.unit.kernels.module_texts import run_loop_pipeline

NEGATED = """
func.func @main(%x: tensor<{rows}x{columns}x{type}>) -> tensor<{columns}x{rows}x{type}> {{
  %0 = stablehlo.negate %x : tensor<{rows}x{columns}x{type}>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<{rows}x{columns}x{type}>) -> tensor<{columns}x{rows}x{type}>
  return %1 : tensor<{columns}x{rows}x{type}>
}}"""


@pytest.mark.parametrize(
    ("type_", "dtype", "shape"),
    [("bf16", ml_dtypes.bfloat16, (96, 80)), ("i16", np.int16, (130, 66)), ("i8", np.int8, (128, 260))],
)
def test_packed_transposes_do_not_rotate(type_: str, dtype: Any, shape: tuple[int, int]) -> None:
    """Places in the tile do not begin again, also where blocks are not full, and results keep their bits."""
    kernel = emit(fusion_of(NEGATED.format(rows=shape[0], columns=shape[1], type=type_)))
    assert "remui" in kernel.text
    assert not may_wrap(kernel.host.llvm)
    x = np.random.default_rng(shape[0]).integers(-100, 100, shape).astype(dtype)
    np.testing.assert_array_equal(kernel.run(x, on="host")[0], -x.T)


# Threads write a tile, each of its rows rotated, and read it by columns. Its rows are so long that LLVM does not
# repeat the loops over them as a whole before it makes vectors.
SQUARE = f"""builtin.module {{
  func.func @square(%x: tensor<2x32x32xf32> {kernels.argument(0, 8192, is_read=True)},
      %o: tensor<2x32x32xf32> {kernels.argument(1, 8192)}) -> tensor<2x32x32xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 1023 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 1 : index]}}
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c32 = arith.constant 32 : index
    %row = arith.divui %th, %c32 : index
    %column = arith.remui %th, %c32 : index
    %twice = arith.muli %column, %c2 : index
    %tile = xla_gpu.allocate_shared : tensor<32x32xf32>
    %v = tensor.extract %x[%bl, %row, %column] : tensor<2x32x32xf32>
    %a = arith.addi WRITE : index
    %b = arith.remui %a, %c32 : index
    %kept = tensor.insert %v into %tile[%row, %b] : tensor<32x32xf32>
    %all = xla_gpu.sync_threads %kept : tensor<32x32xf32>
    %c = arith.addi READ : index
    %d = arith.remui %c, %c32 : index
    %w = tensor.extract %all[%column, PLACE] : tensor<32x32xf32>
    %r = tensor.insert %w into %o[%bl, %row, %column] : tensor<2x32x32xf32>
    func.return %r : tensor<2x32x32xf32>
  }}
}}"""
LAUNCH = Launch((2, 1, 1), (1024, 1, 1))


@pytest.mark.parametrize(
    ("write", "read", "place", "is_straight"),
    [
        ("%column, %row", "%row, %column", "%d", True),
        # One row would keep one element only.
        ("%row, %column", "%column, %row", "%d", True),
        ("%column, %c3", "%row, %c3", "%d", True),
        ("%column, %row", "%row, %twice", "%d", False),
        ("%column, %row", "%row, %c3", "%d", False),
        ("%column, %row", "%row, %column", "%row", False),
        ("%column, %row", "%row, %column", "%bl", False),
    ],
)
def test_all_accesses_are_straight_or_none(write: str, read: str, place: str, is_straight: bool) -> None:
    """A rotation that another access does not have, or a place that varies, stays; what is computed stays the same."""
    text = SQUARE.replace("WRITE", write).replace("READ", read).replace("PLACE", place)
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    before = print_kernel_module(module)
    straighten_tiles(module, entry_of(module), LAUNCH)
    module.verify()
    assert (print_kernel_module(module) != before) == is_straight
    x = np.arange(2048, dtype=np.float32).reshape(2, 32, 32)
    (want,) = run_kernel(parse_kernel_module(text), LAUNCH, [x], [(x.shape, x.dtype)])
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    host = compile_host(module, LAUNCH)
    assert may_wrap(host.llvm) != is_straight
    np.testing.assert_array_equal(host.run([x], [(x.shape, x.dtype)])[0], want)


def entry_of(module: builtin.ModuleOp) -> func.FuncOp:
    """The entry function of a module."""
    (entry,) = (function for function in functions(module) if ENTRY in function.attributes)
    return entry


LOOP = """builtin.module {
  func.func @loop() attributes {xla.entry} {
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c11 = arith.constant 11 : index
    cf.br ^head(%c2 : index)
  ^head(%i: index):
    %more = arith.cmpi slt, %i, %c11 : index
    cf.cond_br %more, ^step, ^after
  ^step:
    %next = arith.addi %i, %c3 : index
    cf.br ^head(%next : index)
  ^after:
    func.return
  }
}"""


def test_the_values_of_a_loops_number() -> None:
    """The number of a loop has its values in the steps, and another one behind the loop."""
    entry = entry_of(parse_kernel_module(LOOP))
    _, head, step, _ = entry.body.blocks
    (loop,) = counted_loops(entry)
    assert (loop.number, list(loop.values)) == (head.args[0], [2, 5, 8])
    assert loop.steps == {step}


# Behind the loop the number is 3: threads read what the next one wrote.
BEHIND = f"""builtin.module attributes {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} {{
  func.func @behind(%x: !llvm.ptr {kernels.argument(0, 64, is_read=True)}, %o: !llvm.ptr {kernels.argument(1, 64)})
      attributes {{xla.entry}} {{
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %th = gpu.thread_id x {{xla.range = [0 : index, 15 : index]}}
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c16 = arith.constant 16 : index
    %own = arith.index_cast %th : index to i64
    %from = llvm.getelementptr inbounds %x[%own] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %from : !llvm.ptr -> f32
    %a = arith.addi %th, %c2 : index
    %b = arith.remui %a, %c16 : index
    %c = arith.index_cast %b : index to i64
    %written = llvm.getelementptr inbounds %tile[%c] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    llvm.store %v, %written : f32, !llvm.ptr<3>
    gpu.barrier
    cf.br ^head(%c2 : index)
  ^head(%i: index):
    %more = arith.cmpi slt, %i, %c3 : index
    cf.cond_br %more, ^step, ^after
  ^step:
    %next = arith.addi %i, %c1 : index
    cf.br ^head(%next : index)
  ^after:
    %d = arith.addi %th, %i : index
    %e = arith.remui %d, %c16 : index
    %f = arith.index_cast %e : index to i64
    %read = llvm.getelementptr inbounds %tile[%f] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %w = llvm.load %read : !llvm.ptr<3> -> f32
    %to = llvm.getelementptr inbounds %o[%own] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %w, %to : f32, !llvm.ptr
    func.return
  }}
  llvm.mlir.global internal @tile() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<16 x f32>
}}"""


def test_a_number_is_another_one_behind_its_loop() -> None:
    """An access behind a loop by the loop's number keeps its rotation."""
    x = np.arange(16, dtype=np.float32)
    kernel = compile_host(parse_kernel_module(BEHIND), Launch((1, 1, 1), (16, 1, 1)))
    np.testing.assert_array_equal(kernel.run([x], [(x.shape, x.dtype)])[0], np.roll(x, -1))
