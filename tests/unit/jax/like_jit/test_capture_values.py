"""Loops capture what they carry unchanged, through open constraints where it is sharded."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib")

from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.jax.like_jit.capture_values import capture_unchanged_values, open_captured_values

NESTED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %w:4 = stablehlo.while(%i = %c, %p = %a, %q = %b, %r = %b) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  cond {
    %l = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  } do {
    %v:3 = stablehlo.while(%j = %i, %s = %p, %t = %q) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    cond {
      %l = stablehlo.compare LT, %j, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %n = stablehlo.add %s, %t : tensor<4xf32>
      stablehlo.return %j, %s, %n : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    }
    stablehlo.return %i, %p, %v#2, %r : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %z = stablehlo.add %w#1, %w#3 : tensor<4xf32>
  %y = stablehlo.add %z, %w#2 : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
CAPTURED = """
  %w = stablehlo.while(%q = %b) : tensor<4xf32>
  cond {
    %l = stablehlo.compare LT, %c, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  } do {
    %v = stablehlo.while(%t = %q) : tensor<4xf32>
    cond {
      %l = stablehlo.compare LT, %c, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %n = stablehlo.add %A, %t : tensor<4xf32>
      stablehlo.return %n : tensor<4xf32>
    }
    stablehlo.return %v : tensor<4xf32>
  }
  %z = stablehlo.add %a, %b : tensor<4xf32>
  %y = stablehlo.add %z, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
OPEN = "= sdy.sharding_constraint {} <@mesh, [{{?}}]> : tensor<4xf32>\n"


def _expected(head: str, captured: str) -> str:
    """Return the text of the nested loops after they captured, as MLIR prints it."""
    text = NESTED[: NESTED.index("  %w:4")] + head + captured.lstrip("\n")
    return str(parse_module(text))


def test_what_never_changes_is_captured() -> None:
    """Values that a loop returns as it got them are taken from outside, through all loops around."""
    program = import_module(parse_module(NESTED))
    assert capture_unchanged_values(program)
    assert str(write_back(program)) == _expected("", CAPTURED.replace("%A", "%a"))


def test_uses_are_in_the_order_of_the_text() -> None:
    """The order of uses, which propagation follows, is that of a program that is read from the captured text."""
    program = import_module(parse_module(NESTED))
    capture_unchanged_values(program)
    again = import_module(parse_module(_expected("", CAPTURED.replace("%A", "%a"))))
    for left, right in zip(program.walk(), again.walk(), strict=True):
        uses = [[(user.name, number) for user, number in value.uses] for value in (*left.results, *left.operands)]
        assert uses == [
            [(user.name, number) for user, number in value.uses] for value in (*right.results, *right.operands)
        ]


def test_a_loop_without_such_values_stays() -> None:
    """Nothing changes where all values change."""
    program = import_module(parse_module(_expected("", CAPTURED.replace("%A", "%a"))))
    before = list(program.walk())
    assert not capture_unchanged_values(program)
    assert list(program.walk()) == before


def test_sharded_values_are_opened_in_front_of_each_loop() -> None:
    """A captured value with a sharding passes an open constraint, at the inner loop first; others are left alone."""
    program = import_module(parse_module(NESTED))
    capture_unchanged_values(program)
    open_captured_values(program)
    captured = CAPTURED.replace("%A", "%inner").replace("    %v =", f"    %inner {OPEN.format('%outer')}    %v =")
    assert str(write_back(program)) == _expected(f"  %outer {OPEN.format('%a')}", captured)


def test_open_shardings_need_no_constraint() -> None:
    """A value whose sharding is fully open, and one without any, is captured as it is."""
    program = import_module(parse_module(NESTED.replace('{"x"}', "{?}")))
    capture_unchanged_values(program)
    before = len(list(program.walk()))
    open_captured_values(program)
    assert len(list(program.walk())) == before
