"""Values that are computed more than once."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels.passes.redundancy import CommonSubexpressions
from tests.unit.kernels.module_texts import after

MODULE = """func.func @main(%c: i1, %x: index, %m: !llvm.ptr) -> (index, index, index, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %below = arith.constant -0.0 : f32
  %again = arith.constant 0.0 : f32
  %s = arith.addi %x, %x : index
  %t = arith.addi %x, %x : index
  %u = scf.if %c -> (index) {
    %i = arith.muli %s, %x : index
    scf.yield %i : index
  } else {
    %j = arith.muli %t, %x : index
    %k = arith.addi %x, %x : index
    %l = arith.addi %j, %k : index
    scf.yield %l : index
  }
  %v = scf.if %c -> (index) {
    %i = arith.muli %t, %x : index
    scf.yield %i : index
  } else {
    %j = arith.muli %s, %x : index
    %l = arith.addi %j, %s : index
    scf.yield %l : index
  }
  %a = "llvm.load"(%m) <{ordering = 0 : i64}> : (!llvm.ptr) -> f32
  "llvm.store"(%again, %m) <{ordering = 0 : i64}> : (f32, !llvm.ptr) -> ()
  %b = "llvm.load"(%m) <{ordering = 0 : i64}> : (!llvm.ptr) -> f32
  %d = arith.addf %zero, %below : f32
  %f = arith.addf %d, %a : f32
  func.return %s, %u, %v, %f, %b, %again : index, index, index, f32, f32, f32
}"""


def test_equal_values_are_computed_once() -> None:
    """Ops with equal regions become one, a region sees what is before it, but not what another region computes."""
    text = after(MODULE, CommonSubexpressions())
    assert {name: text.count(name) for name in ("scf.if", "arith.addi", "arith.muli")} == {
        "scf.if": 1,
        "arith.addi": 2,
        "arith.muli": 2,
    }


def test_what_differs_stays() -> None:
    """A zero below zero is another constant, and memory is read again."""
    text = after(MODULE, CommonSubexpressions())
    assert (text.count("arith.constant"), text.count("llvm.load")) == (2, 2)
