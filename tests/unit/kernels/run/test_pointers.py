"""Access through pointers in the interpreter."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import VerificationError
from shardy_py.kernels.launch.grid import Launch
from tests.unit.kernels.module_texts import run

TEXT = """func.func @main(%x: !llvm.ptr, %o: !llvm.ptr) attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
  BODY
  func.return
}
llvm.mlir.global internal constant @table(dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>) : !llvm.array<4 x f32>"""
COPY = """%s = arith.constant SCALE : index
  %a = arith.constant OFFSET : index
  %m = arith.muli %t, %s : index
  %n = arith.addi %m, %a : index
  %i = arith.index_cast %n : index to i64
  %p = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %p : !llvm.ptr -> TYPE
  %q = llvm.getelementptr inbounds %o[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %v, %q : TYPE, !llvm.ptr"""
X = np.arange(32, dtype=np.float32)


def copied(scale: int, offset: int, type_: str) -> object:
    """32 elements, copied by eight threads."""
    body = COPY.replace("SCALE", str(scale)).replace("OFFSET", str(offset)).replace("TYPE", type_)
    return run(TEXT.replace("BODY", body), X, launch=Launch((1, 1, 1), (8, 1, 1)))


def test_vectors_through_pointers() -> None:
    """Vectors are read and written at a multiple of their size."""
    np.testing.assert_array_equal(copied(4, 0, "vector<4xf32>"), X)


@pytest.mark.parametrize(
    ("scale", "offset", "type_", "code"),
    [
        (4, 4, "vector<4xf32>", "out-of-bounds"),
        (3, 1, "vector<4xf32>", "misaligned-vector"),
        (1, -1, "f32", "out-of-bounds"),
        (1, 0, "f32", "unwritten-element"),
    ],
)
def test_faults(scale: int, offset: int, type_: str, code: str) -> None:
    """Accesses outside of a buffer or off a vector's size, and elements that nobody writes, are errors."""
    with pytest.raises(VerificationError) as caught:
        copied(scale, offset, type_)
    assert caught.value.diagnostics[0].code == code


def test_numbers_of_another_size() -> None:
    """Pointers step by bytes, so that numbers of more bytes than an element of the memory are several of them."""
    body = COPY.replace("SCALE", "1").replace("OFFSET", "0").replace("TYPE", "f64").replace("ptr, f32", "ptr, f64")
    launch = Launch((1, 1, 1), (8, 1, 1))
    np.testing.assert_array_equal(run(TEXT.replace("BODY", body), X[:16], launch=launch), X[:16])
    with pytest.raises(VerificationError, match="bytes 48 to 55 are not all inside of argument 0, which has 48"):
        run(TEXT.replace("BODY", body), X[:12], launch=launch)


def test_constants() -> None:
    """Constants of the module are memory that is only read."""
    body = """%i = arith.index_cast %t : index to i64
  %c = llvm.mlir.addressof @table : !llvm.ptr
  %p = llvm.getelementptr inbounds %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %p : !llvm.ptr -> f32
  %q = llvm.getelementptr inbounds %o[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %v, %q : f32, !llvm.ptr"""
    actual = run(TEXT.replace("BODY", body), X[:4], launch=Launch((1, 1, 1), (4, 1, 1)))
    np.testing.assert_array_equal(actual, [1, 2, 3, 4])
