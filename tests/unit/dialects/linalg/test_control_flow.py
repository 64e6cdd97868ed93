"""Shardings flow through the loops and branches of scf, read by xDSL."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl")

import shardy_py as sdy
from tests.unit.dialects.linalg.test_linalg import REGISTRY

T = "tensor<8x4xf32>"
FOR = f"""builtin.module {{
  func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) {{
    %low = arith.constant 0 : index
    %high = arith.constant 4 : index
    %step = arith.constant 1 : index
    %p, %q = scf.for %i = %low to %high step %step iter_args(%a = %x, %b = %y) -> ({T}, {T}) {{
      %sum = arith.addf %a, %a : {T}
      scf.yield %sum, %b : {T}, {T}
    }}
    func.return %p, %q : {T}, {T}
  }}
}}"""
IF = f"""builtin.module {{
  func.func @main(%c: i1, %x: {T}, %y: {T}) -> {T} {{
    %r = scf.if %c -> ({T}) {{
      %t = math.exp %x : {T}
      scf.yield %t : {T}
    }} else {{
      %e = math.sin %y : {T}
      scf.yield %e : {T}
    }}
    func.return %r : {T}
  }}
}}"""
WHILE = f"""builtin.module {{
  func.func @main(%x: {T}, %n: i32) -> (tensor<4x8xf32>, i32) {{
    %r, %k = scf.while (%a = %x, %m = %n) : ({T}, i32) -> (tensor<4x8xf32>, i32) {{
      %zero = arith.constant 0 : i32
      %go = arith.cmpi sgt, %m, %zero : i32
      %e = tensor.empty() : tensor<4x8xf32>
      %t = linalg.transpose ins(%a : {T}) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
      scf.condition(%go) %t, %m : tensor<4x8xf32>, i32
    }} do {{
    ^bb0(%b: tensor<4x8xf32>, %l: i32):
      %f = tensor.empty() : {T}
      %u = linalg.transpose ins(%b : tensor<4x8xf32>) outs(%f : {T}) permutation = [1, 0]
      scf.yield %u, %l : {T}, i32
    }}
    func.return %r, %k : tensor<4x8xf32>, i32
  }}
}}"""
ROWS, COLUMNS = '<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"a"}]>'


def propagate(text, **given):
    """Propagate with the shardings of some arguments; the result propagated again is the same."""
    from shardy_py.frontends.xdsl import parse_module

    result = sdy.propagate(parse_module(text), {"a": 2}, in_shardings=given, registry=REGISTRY)
    assert sdy.propagate(parse_module(result.text), registry=REGISTRY).text == result.text
    return result


def of(result, *names):
    """Return the shardings of some values."""
    return [str(result.sharding(name)) for name in names]


def test_a_counted_loop() -> None:
    """What a for loop carries is sharded alike outside, in the body, and after it; its bounds have no part."""
    result = propagate(FOR, arg0=("a", None), arg1=(None, "a"))
    assert of(result, "p", "a", "sum") == [ROWS] * 3
    assert of(result, "q", "b") == [COLUMNS] * 2


def test_a_branch() -> None:
    """What both branches hand back is sharded as the result; from one it reaches the other, and what is in it."""
    result = propagate(IF, arg1=("a", None))
    assert of(result, "t", "r", "e", "y") == [ROWS] * 4


def test_a_loop_with_a_condition() -> None:
    """A condition may hand on something else than it got: arguments and results are edges of their own."""
    result = propagate(WHILE, arg0=("a", None))
    assert of(result, "a", "u") == [ROWS] * 2
    assert of(result, "t", "b", "r") == [COLUMNS] * 3


def test_backward_through_a_loop_with_a_condition() -> None:
    """What the result of a while loop is needed for reaches its initial value; the op keeps both kinds of edges."""
    text = WHILE.replace("%n: i32)", "%n: i32, %w: tensor<4x8xf32>)")
    text = text.replace("func.return %r", "%s = arith.addf %r, %w : tensor<4x8xf32>\n    func.return %s")
    result = propagate(text, arg2=("a", None))
    assert of(result, "r", "t", "b") == [ROWS] * 3
    assert of(result, "x", "a", "u") == [COLUMNS] * 3
    assert "scf.argument_shardings" in result.text


def test_explicit_collectives() -> None:
    """Communication inside a loop is made explicit there."""
    from shardy_py.frontends.xdsl import parse_module

    text = FOR.replace("%sum = arith.addf %a, %a", "%sum = arith.addf %a, %b")
    in_shardings = {0: ("a", None), 1: (None, "a")}
    options = {"in_shardings": in_shardings, "registry": REGISTRY, "explicit_collectives": True}
    result = sdy.propagate(parse_module(text), {"a": 2}, **options)
    inside = [op.name for op in result.program.walk() if op.parent_op is not None and op.parent_op.name == "scf.for"]
    assert "sdy.all_to_all" in inside
