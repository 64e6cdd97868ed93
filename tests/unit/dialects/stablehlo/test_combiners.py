"""How reductions of StableHLO combine, beside rules that are equal to the reference's."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.api.source import read_program
from shardy_py.sharding.combiner import Combiner

REGISTRY = sdy.Registry.from_entry_points()


def reductions(text, name):
    """Return the rule of an op of a program, and how it combines."""
    op = next(op for op in read_program(text).walk() if op.name == name)
    return REGISTRY.get_sharding_rule(op), REGISTRY.get_reductions(op)


@pytest.mark.parametrize(
    ("op", "element", "expected"),
    [
        ("add", "f32", Combiner.ADD),
        ("multiply", "f32", Combiner.MUL),
        ("maximum", "f32", Combiner.MAX),
        ("minimum", "i32", Combiner.MIN),
        ("and", "i32", Combiner.AND),
        ("or", "i1", Combiner.OR),
        ("xor", "i32", None),
    ],
)
def test_a_reduce_combines_as_its_region_does(op, element, expected):
    """The rule has the reference's text; the combiner stands beside it, None where the region is no reduction."""
    zero = "false" if element == "i1" else "0.0" if element == "f32" else "0"
    text = f"""func.func @main(%x: tensor<8x4x{element}>) -> tensor<8x{element}> {{
      %c = stablehlo.constant dense<{zero}> : tensor<{element}>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{op} across dimensions = [1]
        : (tensor<8x4x{element}>, tensor<{element}>) -> tensor<8x{element}>
      return %0 : tensor<8x{element}>
    }}"""
    rule, found = reductions(text, "stablehlo.reduce")
    assert str(rule) == "<([i, j], [])->([i]) {i=8, j=4} reduction={j}>"
    assert dict(found.combiners) == {1: expected}
    assert found.initial_operands == (1,)
    assert not found.shape_collectives


def test_the_position_of_the_largest_element_is_no_reduction():
    """A reduce of values and their numbers combines in a way that no combiner knows."""
    text = """func.func @main(%x: tensor<8x4xf32>, %n: tensor<8x4xi32>, %a: tensor<f32>, %b: tensor<i32>)
        -> (tensor<8xf32>, tensor<8xi32>) {
      %0:2 = stablehlo.reduce(%x init: %a), (%n init: %b) across dimensions = [1]
          : (tensor<8x4xf32>, tensor<8x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
        reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {
          %1 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %2 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
          %3 = stablehlo.select %1, %r, %s : tensor<i1>, tensor<i32>
          stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
        }
      return %0#0, %0#1 : tensor<8xf32>, tensor<8xi32>
    }"""
    _, found = reductions(text, "stablehlo.reduce")
    assert set(found.combiners.values()) == {None}
