"""The passes over kernels, one after the other."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.dialect.text import parse_kernel_module, print_kernel_module
from shardy_py.kernels.kernel import INITIAL, emit
from shardy_py.kernels.passes.canonicalize import Canonicalize
from shardy_py.kernels.passes.index_ranges import SimplifyArith
from shardy_py.kernels.passes.inline import Inline
from shardy_py.kernels.passes.loops import UnrollLoops, UnswitchLoops
from shardy_py.kernels.passes.pipeline import LOOP_PIPELINE
from shardy_py.kernels.passes.redundancy import CommonSubexpressions, LoopInvariantCode
from shardy_py.kernels.passes.vectorize import VectorizeLoadsStores
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, fusion_of
from tests.unit.kernels.module_texts import after, function


def test_ranges_decide_comparisons_and_branches() -> None:
    """A comparison that the range of a thread's number decides is a constant, and its branch is gone."""
    text = function(
        """%th = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
    %n = arith.constant 64 : index
    %in = arith.cmpi slt, %th, %n : index
    %r = scf.if %in -> (tensor<64xf32>) {
      %v = tensor.extract %x[%th] : tensor<64xf32>
      %w = tensor.insert %v into %o[%th] : tensor<64xf32>
      scf.yield %w : tensor<64xf32>
    } else {
      scf.yield %o : tensor<64xf32>
    }"""
    )
    actual = after(text, SimplifyArith())
    assert "scf.if" not in actual
    assert "arith.cmpi" not in actual


def test_index_maps_are_folded() -> None:
    """Chains of maps become one, constants are put in, and what nothing uses goes."""
    text = function(
        """%one = arith.constant 3 : index
    %a = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(a, b) -> (a * 8 + b), "
        "domain: a in [0, 7], b in [0, 7]">(%i, %one)
    %b = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [0, 63]">(%a)
    %d = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 8), domain: d0 in [0, 63]">(%a)
    %v = tensor.extract %x[%b] : tensor<64xf32>
    %r = tensor.insert %v into %o[%d] : tensor<64xf32>"""
    )
    actual = after(text, Canonicalize())
    assert "apply_indexing" not in actual
    assert "tensor.extract %x[%i]" in actual
    assert "arith.constant 3 : index" in actual


def test_functions_that_are_called_once_are_inlined() -> None:
    """What is called at one place is inlined; what is called at two different indices is not."""
    once = emit(fusion_of(NEGATE.format(shape="300")))
    assert "pure_call" in once.stage(INITIAL)
    assert "pure_call" not in once.stage("inline")
    twice = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9))).stage("inline")
    assert twice.count("pure_call") == 2
    assert twice.count("func.func") == 2


LOOP = """%zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %r = scf.for %s = %zero to %four step %one iter_args(%t = %o) -> (tensor<64xf32>) {
      %in = arith.cmpi slt, %i, %four : index
      %u = scf.if %in -> (tensor<64xf32>) {
        %p = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), "
            "domain: d0 in [0, 15], d1 in [0, 3]">(%i, %s)
        %v = tensor.extract %x[%p] : tensor<64xf32>
        %n = arith.negf %v : f32
        %w = tensor.insert %n into %t[%p] : tensor<64xf32>
        scf.yield %w : tensor<64xf32>
      } else {
        scf.yield %t : tensor<64xf32>
      }
      scf.yield %u : tensor<64xf32>
    }"""


def test_a_loop_of_neighbours_becomes_one_read_and_one_write() -> None:
    """The condition leaves the loop, then the loop reads and writes a vector, then it is gone."""
    text = function(LOOP)
    switched = after(text, LoopInvariantCode(), UnswitchLoops(), LoopInvariantCode())
    assert switched.index("scf.if") < switched.index("scf.for")
    wide = after(switched, VectorizeLoadsStores())
    assert wide.count("vector.transfer_read") == wide.count("vector.transfer_write") == 1
    assert "tensor.insert" not in wide
    flat = after(wide, UnrollLoops())
    assert "scf.for" not in flat
    assert flat.count("arith.negf") == 4


@pytest.mark.parametrize("expression", ["d0 * 4 + d1 + 1", "d0 * 2 + d1", "d0 * 4 + d1 * 2", "d0 * 4 + (d1 + 1) mod 4"])
def test_places_that_are_no_aligned_neighbours_stay_single(expression: str) -> None:
    """Steps that begin off a multiple of their number, or are not side by side, are not read at once."""
    text = function(LOOP.replace("d0 * 4 + d1)", f"{expression})"))
    actual = after(text, LoopInvariantCode(), UnswitchLoops(), LoopInvariantCode(), VectorizeLoadsStores())
    assert "vector." not in actual


def test_a_tensor_that_is_written_in_the_loop_is_not_read_before_it() -> None:
    """A read of what the loop writes stays where it is."""
    text = function(LOOP.replace("tensor.extract %x[%p]", "tensor.extract %t[%p]"))
    actual = after(text, LoopInvariantCode(), UnswitchLoops(), LoopInvariantCode(), VectorizeLoadsStores())
    assert "vector.transfer_read" not in actual


def test_the_worked_example() -> None:
    """A large elementwise kernel reads and writes four elements at once, without loop and branch."""
    kernel = emit(fusion_of(NEGATE.format(shape="6x512x4096")))
    assert kernel.launch.blocks == (24576, 1, 1)
    assert "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + s0" in kernel.stages[INITIAL]
    assert "(th_x, bl_x, d2) -> (th_x * 4 + bl_x * 512 + d2)" in kernel.stage("flatten-tensors")
    unrolled = kernel.stage("optimize-loops")
    assert unrolled.count("vector.transfer_read") == unrolled.count("vector.transfer_write") == 1
    assert "scf.for" not in unrolled
    assert kernel.text.count("llvm.load") == kernel.text.count("llvm.store") == 1
    assert "scf." not in kernel.text
    assert "cf." not in kernel.text


def test_every_stage_reads_back() -> None:
    """The text of every stage before LLVM's is a module that prints as the same text."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9)))
    assert len(kernel.stages) == len(LOOP_PIPELINE) + 1
    for text in kernel.stages.values():
        assert print_kernel_module(parse_kernel_module(text)) == text


def test_inlining_keeps_large_functions() -> None:
    """A function of more ops than the option says is not inlined."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    simplified = after(kernel.stages[INITIAL], Canonicalize(), CommonSubexpressions(), Inline(max_ops=1))
    assert "pure_call" in simplified
