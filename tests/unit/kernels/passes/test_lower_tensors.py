"""Tensors as pointers."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")
pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

import numpy as np

from shardy_py.kernels import emit, read_fusions
from shardy_py.kernels.passes.lower_tensors import LowerTensors
from tests.unit.kernels.module_texts import after, function, run

NESTED = """func.func @main(%x: tensor<8xf32> {xla.invariant}, %o: tensor<8xf32>) -> tensor<8xf32>
    attributes {xla.entry} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %four = arith.constant 4 : index
  %nothing = arith.constant 0.0 : f32
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %r, %sum = scf.for %i = %zero to %eight step %one iter_args(%t = %o, %s = %nothing) -> (tensor<8xf32>, f32) {
    %v = tensor.extract %x[%i] : tensor<8xf32>
    %f = tensor.extract %k[%i] : tensor<8xf32>
    %n = arith.addf %s, %v : f32
    %c = arith.cmpi slt, %i, %four : index
    %u = scf.if %c -> (tensor<8xf32>) {
      %w = tensor.insert %n into %t[%i] : tensor<8xf32>
      scf.yield %w : tensor<8xf32>
    } else {
      %w = tensor.insert %f into %t[%i] : tensor<8xf32>
      scf.yield %w : tensor<8xf32>
    }
    scf.yield %u, %n : tensor<8xf32>, f32
  }
  func.return %r : tensor<8xf32>
}"""


def test_loops_and_branches_carry_scalars_only() -> None:
    """Tensors that loops and branches carried are gone, the scalars stay, and the kernel writes what it wrote."""
    lowered = after(NESTED, LowerTensors())
    assert "tensor<" not in lowered.replace("dense<", "").split("llvm.mlir.global")[0]
    assert "iter_args(%s = %nothing) -> (f32)" in lowered
    assert lowered.count("llvm.store") == 2
    x = np.arange(8, dtype=np.float32)
    expected = np.concatenate([np.cumsum(x)[:4], np.arange(5, 9)])
    np.testing.assert_array_equal(run(NESTED, x), expected)
    np.testing.assert_array_equal(run(lowered, x), expected)


def test_loads_of_what_nobody_writes_are_marked() -> None:
    """Loads from arguments that nobody writes, and from constants, say so."""
    loads = [line for line in after(NESTED, LowerTensors()).splitlines() if "llvm.load" in line]
    assert len(loads) == 2
    assert all("invariant" in line for line in loads)


def test_vectors_know_their_alignment() -> None:
    """A vector of four f32 stands at a multiple of sixteen bytes."""
    text = function(
        """%z = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%i], %z {in_bounds = [true]} : tensor<64xf32>, vector<4xf32>
    %r = vector.transfer_write %v, %o[%i] {in_bounds = [true]} : vector<4xf32>, tensor<64xf32>"""
    )
    actual = after(text, LowerTensors())
    assert actual.count("alignment = 16") == 2


def test_shared_memory_is_a_global() -> None:
    """A tile is a global in the space of shared memory, and waiting for it a barrier."""
    text = function("""%s = xla_gpu.allocate_shared : tensor<64xf32>
    %v = tensor.extract %x[%i] : tensor<64xf32>
    %t = tensor.insert %v into %s[%i] : tensor<64xf32>
    %u = xla_gpu.sync_threads %t : tensor<64xf32>
    %w = tensor.extract %u[%i] : tensor<64xf32>
    %r = tensor.insert %w into %o[%i] : tensor<64xf32>""")
    actual = after(text, LowerTensors())
    assert actual.count("gpu.barrier") == 1
    assert "addr_space = 3 : i32" in actual
    assert actual.count("!llvm.ptr<3>, i64") == 2


ATOMIC = """%w = tensor.extract %x[%i] : tensor<64xf32>
    %r = xla_gpu.atomic_rmw %o[%i] : tensor<64xf32> {{
    ^bb0(%e: f32):
      {}
    }}"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%n = arith.addf %e, %w : f32\n xla_gpu.yield %n : f32", ["llvm.atomicrmw fadd"]),
        ("%n = arith.addf %w, %e : f32\n xla_gpu.yield %n : f32", ["llvm.atomicrmw fadd"]),
        ("%n = arith.addf %e, %e : f32\n xla_gpu.yield %n : f32", ["scf.while", "llvm.cmpxchg"]),
        ("%n = arith.subf %e, %w : f32\n xla_gpu.yield %n : f32", ["scf.while", "llvm.cmpxchg"]),
        ("%n = arith.maximumf %e, %w : f32\n xla_gpu.yield %n : f32", ["atomicrmw max", "atomicrmw umin"]),
        ("xla_gpu.yield %w : f32", ["llvm.store"]),
    ],
)
def test_atomic_updates(body: str, expected: list[str]) -> None:
    """Memory adds floats by itself and compares them by their bits; all else is tried until nobody was faster."""
    actual = after(function(ATOMIC.format(body)), LowerTensors())
    assert all(actual.count(text) == 1 for text in expected)
    assert ("cmpxchg" in actual) == ("llvm.cmpxchg" in expected)


def test_a_kernel_may_be_called_as_its_constants_are() -> None:
    """The piece of a constant alone has its name; the memory of its elements gets another one."""
    text = """
func.func @main() -> tensor<3xi32> {
  %0 = stablehlo.constant dense<[4, 5, 6]> : tensor<3xi32>
  return %0 : tensor<3xi32>
}"""
    (piece,) = read_fusions(text)
    kernel = emit(piece)
    assert kernel.name == "constant_0"
    assert kernel.run(on="host")[0].tolist() == kernel.run()[0].tolist() == [4, 5, 6]
    assert "constant_1" in kernel.llvm
