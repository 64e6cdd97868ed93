"""Reductions along sharded dimensions that no collective combines, on host devices."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import numpy as np

import shardy_py as sdy
from shardy_py.api.options import LocalOptions
from shardy_py.frontends.mlir import verify_module
from shardy_py.jax.local import make_local_program
from shardy_py.plugins import Registry
from tests.unit.dialects.stablehlo.local.on_devices import UNEVEN
from tests.unit.local.host_devices import compare, compare_padded, propagate_unevenly

ARGMAX = """%v, %w = stablehlo.reduce(%a init: %low), (%i init: %zero) across dimensions = [1]
      : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%x: tensor<f32>, %y: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>)  {
      %gt = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %eq = stablehlo.compare EQ, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %lt = stablehlo.compare LT, %j, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %first = stablehlo.and %eq, %lt : tensor<i1>
      %left = stablehlo.or %gt, %first : tensor<i1>
      %p = stablehlo.select %left, %x, %y : tensor<i1>, tensor<f32>
      %q = stablehlo.select %left, %j, %k : tensor<i1>, tensor<i32>
      stablehlo.return %p, %q : tensor<f32>, tensor<i32>
    }"""
PROGRAM = f"""{UNEVEN}
func.func @main(%a: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}})
    -> (tensor<4xf32>, tensor<4xi32>) {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<4x8xi32>
  {ARGMAX}
  return %v, %w : tensor<4xf32>, tensor<4xi32>
}}"""
NUMBERS = np.random.default_rng(0).integers(-9, 9, (4, 8)).astype(np.float32) - 20


def test_the_place_of_the_largest_element_is_found_among_those_of_shards() -> None:
    """Values and places are reduced on shards first, ties included, and padding does not count."""
    assert compare_padded(PROGRAM, NUMBERS) == []


def test_only_results_of_shards_are_gathered() -> None:
    """What devices send each other for the place of the largest element is one element per row."""
    local = sdy.propagate(
        PROGRAM.replace('"y"=3', '"y"=2').replace("[3, 1, 0, 2, 5, 4]", "[3, 1, 0, 2]"), local=True
    ).local()
    kinds = [(item.kind, str(item.type)) for item in local.collectives]
    assert ("all_gather", "tensor<2x2x1xf32>") in kinds
    assert ("all_gather", "tensor<2x2x1xi32>") in kinds
    assert all("x4x" not in type_ for _, type_ in kinds)
    assert not local.warnings


def test_integers_that_combine_bit_by_bit_are_gathered_when_they_are_reduced() -> None:
    """No collective combines bits, so the results of shards are gathered and reduced again."""
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: tensor<i32>) -> tensor<i32> {
      %0 = stablehlo.reduce(%a init: %i) applies stablehlo.or across dimensions = [0]
          : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
      return %0 : tensor<i32>
    }"""
    assert [item.kind for item in sdy.propagate(text, local=True).local().collectives] == ["all_gather"]


def several(second: str) -> str:
    """Return the sum of rows together with another reduction of them, from values that are not neutral."""
    return f"""{UNEVEN}
    func.func @main(%a: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}})
        -> (tensor<4xf32>, tensor<4xf32>) {{
      %i = stablehlo.constant dense<1.0> : tensor<f32>
      %v, %w = stablehlo.reduce(%a init: %i), (%a init: %i) across dimensions = [1]
          : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
         reducer(%x: tensor<f32>, %y: tensor<f32>) (%j: tensor<f32>, %k: tensor<f32>)  {{
          %p = stablehlo.add %x, %y : tensor<f32>
          %q = {second}
          stablehlo.return %p, %q : tensor<f32>, tensor<f32>
        }}
      return %v, %w : tensor<4xf32>, tensor<4xf32>
    }}"""


def test_initial_values_count_once_whatever_else_is_reduced() -> None:
    """Results that combine in different ways have their initial values once each, and none in the place of padding."""
    assert compare_padded(several("stablehlo.multiply %k, %j : tensor<f32>"), NUMBERS / 20) == []


def test_reductions_without_known_neutral_values_are_gathered() -> None:
    """Where no values are neutral for a region, initial values could count once per shard: nothing is reduced there."""
    local = make_local_program(
        propagate_unevenly(several("stablehlo.atan2 %j, %k : tensor<f32>")),
        registry=Registry.from_entry_points(),
        options=LocalOptions(),
    )
    assert [item.op for item in local.warnings] == ["stablehlo.reduce"]


def test_gathered_reductions_along_parts_of_one_axis_are_not_combined_again() -> None:
    """A result that is whole along the parts of an axis needs no collective along the axis."""
    text = """sdy.mesh @mesh = <["y"=4]>
    func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}, {"y":(2)2}]>})
        -> tensor<f32> {
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%a init: %i) across dimensions = [0, 1]
          : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
         reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %p = stablehlo.abs %y : tensor<f32>
          %q = stablehlo.add %x, %p : tensor<f32>
          stablehlo.return %q : tensor<f32>
        }
      return %0 : tensor<f32>
    }"""
    assert compare(text, np.abs(NUMBERS)) == ["stablehlo.reduce"]


def test_tensors_without_elements_are_not_sent() -> None:
    """No collective moves a tensor that has no elements."""
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<0x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
        -> (tensor<0x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
      %0 = stablehlo.sine %a : tensor<0x4xf32>
      return %0 : tensor<0x4xf32>
    }"""
    assert not sdy.propagate(text, local=True).local().collectives


def test_operands_of_one_reduction_are_gathered_together() -> None:
    """Where the operands of a reduction are gathered first, none of them is left in parts."""
    text = PROGRAM.replace('"y"=3', '"y"=2').replace("[3, 1, 0, 2, 5, 4]", "[3, 1, 0, 2]")
    places = ', %i: tensor<4x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})\n    -> (tensor<4xf32>'
    text = text.replace(")\n    -> (tensor<4xf32>", places).replace("%i = stablehlo.iota dim = 1 : tensor<4x8xi32>", "")
    local = sdy.propagate(text, local=True, extended_rules=True).local()
    verify_module(local.module, name="local")
    assert not local.warnings
