"""Control flow, blocks, vectors and atomic updates of kernels, for all threads at once."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import numpy as np
from xdsl.transforms.convert_scf_to_cf import ConvertScfToCf

from shardy_py.errors import VerificationError
from shardy_py.kernels.dialect.text import make_context, parse_kernel_module, print_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels.run.modules import entry, run_one

X = "%x: tensor<32xf32>,"
TENSOR = "tensor<32xf32>"
OUT = ((32,), np.float32)

SUM_TO_OWN = """
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %half = arith.constant 16 : index
  %sum = scf.for %i = %zero to %t step %one iter_args(%s = %none) -> (f32) {
    %e = tensor.extract %x[%i] : tensor<32xf32>
    %n = arith.addf %s, %e : f32
    scf.yield %n : f32
  }
  %late = arith.cmpi sge, %t, %half : index
  %v = scf.if %late -> (f32) {
    %m = arith.negf %sum : f32
    scf.yield %m : f32
  } else {
    scf.yield %sum : f32
  }
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""


def values() -> np.ndarray:
    """32 different numbers."""
    return np.arange(1, 33, dtype=np.float32)


def sums() -> np.ndarray:
    """What `SUM_TO_OWN` writes."""
    actual = np.concatenate([[0], np.cumsum(values())[:-1]])
    return np.where(np.arange(32) >= 16, -actual, actual).astype(np.float32)


@pytest.mark.parametrize("is_lowered", [False, True])
def test_loops_of_different_length(is_lowered: bool) -> None:
    """Threads take as many trips as they have, in loops and in branches between blocks."""
    module = entry(X, SUM_TO_OWN, result=TENSOR, returned="%r")
    if is_lowered:
        ConvertScfToCf().apply(make_context(), module)
        assert "cf.cond_br" in print_kernel_module(module)
    np.testing.assert_array_equal(run_one(module, [values()], OUT), sums())


def test_loop_over_a_map() -> None:
    """A loop runs for all values of the symbols that the constraints allow, and for no others."""
    body = """
  %w = xla_gpu.loop (%t)[%a] -> (%i) in #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 3 + s0),"
      " domain: d0 in [0, 31], s0 in [0, 2], d0 * 3 + s0 in [0, 31]"> iter_args(%c = %o) -> (tensor<32xf32>) {
    %e = tensor.extract %x[%i] : tensor<32xf32>
    %n = tensor.insert %e into %c[%i] : tensor<32xf32>
    xla_gpu.yield %n : tensor<32xf32>
  }"""
    np.testing.assert_array_equal(run_one(entry(X, body, result=TENSOR), [values()], OUT), values())


def test_switch() -> None:
    """Each thread takes the region of its case."""
    body = """
  %k = arith.constant 10 : index
  %d = arith.divui %t, %k : index
  %v = scf.index_switch %d -> f32
  case 0 {
    %e = arith.constant 5.0 : f32
    scf.yield %e : f32
  }
  case 2 {
    %e = tensor.extract %x[%t] : tensor<32xf32>
    scf.yield %e : f32
  }
  default {
    %e = arith.constant 7.0 : f32
    scf.yield %e : f32
  }
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    number = np.arange(32) // 10
    want = np.select([number == 0, number == 2], [np.float32(5), values()], np.float32(7))
    np.testing.assert_array_equal(run_one(entry(X, body, result=TENSOR), [values()], OUT), want)


ADD = """
func.func private @add(%a: f32, %b: f32) -> f32 {
  %c = arith.addf %a, %b : f32
  func.return %c : f32
}"""


def test_values_of_other_lanes() -> None:
    """A reduction over lanes leaves the sum of a warp in its first lane; lanes beyond the warp give the own value."""
    body = """
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %v = xla_gpu.shuffle_reduce(%e) to 16 combiner=@add : f32
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    actual = run_one(entry(X, body, result=TENSOR, functions=ADD), [values()], OUT)
    assert actual[0] == values().sum()
    assert actual[31] == 32 * values()[31]


def test_shuffles_say_whether_there_is_a_lane() -> None:
    """The value of a lane further down, and whether it is in the width."""
    body = """
  %four = arith.constant 4 : i32
  %width = arith.constant 16 : i32
  %zero = arith.constant 0.0 : f32
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %s, %p = gpu.shuffle down %e, %four, %width : f32
  %v = arith.select %p, %s, %zero : f32
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    actual = run_one(entry(X, body, result=TENSOR), [values()], OUT)
    lanes = np.arange(32)
    np.testing.assert_array_equal(actual, np.where(lanes % 16 < 12, lanes + 5, 0))


def test_shuffle_needs_the_whole_warp() -> None:
    """A thread of a warp that does not take part in an exchange is an error."""
    body = """
  %p = arith.constant 3 : index
  %c = arith.cmpi slt, %t, %p : index
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %v = scf.if %c -> (f32) {
    %w = xla_gpu.shuffle_reduce(%e) to 1 combiner=@add : f32
    scf.yield %w : f32
  } else {
    scf.yield %e : f32
  }
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    with pytest.raises(VerificationError, match="non-uniform-shuffle"):
        run_one(entry(X, body, result=TENSOR, functions=ADD), [values()], OUT)


SCATTER = """
  %m = arith.constant 3 : index
  %n = arith.constant 64 : index
  %base = arith.muli %block, %n : index
  %g = arith.addi %base, %t : index
  %k = arith.remui %g, %m : index
  %f = arith.index_castui %g : index to i32
  %v = arith.sitofp %f : i32 to f32
  %r = xla_gpu.atomic_rmw %o[%k] : tensor<3xf32> {
  ^bb0(%current: f32):
    %half = arith.constant 0.7 : f32
    %p = arith.mulf %current, %half : f32
    %s = arith.addf %p, %v : f32
    xla_gpu.yield %s : f32
  }"""


def test_atomic_updates_follow_the_order_of_threads() -> None:
    """Atomic updates happen one after the other in the order of the threads, however many run at once."""
    module = entry("%x: tensor<3xf32>,", SCATTER, result="tensor<3xf32>")
    want = np.full(3, 2, np.float32)
    for number in range(256):
        want[number % 3] = np.float32(want[number % 3] * np.float32(0.7)) + np.float32(number)
    before = np.full(3, 2, np.float32)
    for chunk in (64, 128, 256):
        launch = Launch((4, 1, 1), (64, 1, 1))
        (actual,) = run_kernel(module, launch, [before], [((3,), np.float32)], chunk=chunk, slices=(0, 0))
        np.testing.assert_array_equal(actual, want)
    np.testing.assert_array_equal(before, 2)


VECTORS = """
  %four = arith.constant 4 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %i = arith.muli %t, %{factor} : index
  %v = vector.transfer_read %x[%i], %none {{in_bounds = [true]}} : tensor<128xf32>, vector<4xf32>
  %e = vector.extract %v[%one] : f32 from vector<4xf32>
  %f = arith.negf %e : f32
  %w = vector.insert %f, %v [%one] : f32 into vector<4xf32>
  %u = arith.addf %w, %w : vector<4xf32>
  %r = vector.transfer_write %u, %o[%i] {{in_bounds = [true]}} : vector<4xf32>, tensor<128xf32>"""


def test_vectors() -> None:
    """A vector is neighbouring elements; the ops on it are those on its elements."""
    numbers = np.arange(128, dtype=np.float32)
    module = entry("%x: tensor<128xf32>,", VECTORS.format(factor="four"), result="tensor<128xf32>")
    actual = run_one(module, [numbers], ((128,), np.float32))
    np.testing.assert_array_equal(actual, np.where(np.arange(128) % 4 == 1, -2, 2) * numbers)


def test_vectors_begin_at_multiples_of_their_size() -> None:
    """A vector whose place is no multiple of its size is an error."""
    module = entry("%x: tensor<128xf32>,", VECTORS.format(factor="one"), result="tensor<128xf32>")
    with pytest.raises(VerificationError, match="misaligned-vector"):
        run_one(module, [np.zeros(128, np.float32)], ((128,), np.float32))


def test_predicated_access() -> None:
    """Elements are read and written where a condition holds."""
    body = """
  %k = arith.constant 8 : index
  %none = arith.constant -1.0 : f32
  %c = arith.cmpi slt, %t, %k : index
  %four = arith.constant 4 : index
  %far = arith.muli %t, %four : index
  %v = xla_gpu.predicated_extract %x[%far] if %c else %none : tensor<32xf32>
  %yes = arith.constant true
  %r = xla_gpu.predicated_insert %v into %o[%t] if %yes : tensor<32xf32>"""
    actual = run_one(entry(X, body, result=TENSOR), [values()], OUT)
    np.testing.assert_array_equal(actual, np.where(np.arange(32) < 8, np.arange(32) * 4 + 1, -1))


def test_arguments_of_one_slice_are_the_same_memory() -> None:
    """A result whose slice is that of a parameter begins as the parameter; the caller's array stays as it is."""
    body = """
  %k = arith.constant 4 : index
  %c = arith.cmpi slt, %t, %k : index
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %n = arith.negf %e : f32
  %r = xla_gpu.predicated_insert %n into %o[%t] if %c : tensor<32xf32>"""
    module = entry(X, body, result=TENSOR)
    text = print_kernel_module(module).replace(
        ": tensor<32xf32>,", ": tensor<32xf32> {xla.slice_index = 0 : index},", 1
    )
    text = text.replace("%o: tensor<32xf32>)", "%o: tensor<32xf32> {xla.slice_index = 0 : index})", 1)
    before = values()
    actual = run_one(parse_kernel_module(text), [before], OUT)
    np.testing.assert_array_equal(actual, np.where(np.arange(32) < 4, -values(), values()))
    np.testing.assert_array_equal(before, values())


def test_some_blocks_of_a_grid() -> None:
    """Only the blocks that are named run; what others write keeps the pattern of undefined memory."""
    body = """
  %c = arith.constant 32 : index
  %f = arith.muli %block, %c : index
  %i = arith.addi %f, %t : index
  %v = tensor.extract %x[%i] : tensor<128xf32>
  %r = tensor.insert %v into %o[%i] : tensor<128xf32>"""
    module = entry("%x: tensor<128xf32>,", body, result="tensor<128xf32>", returned="%r")
    values, launch = np.arange(128, dtype=np.float32), Launch((4, 1, 1), (32, 1, 1))
    actual = run_one(module, [values], ((128,), np.float32), launch=launch, blocks=[1, 3])
    written = np.repeat([False, True, False, True], 32)
    assert (actual[written] == values[written]).all()
    assert len(set(actual[~written].view(np.uint32))) == 1
