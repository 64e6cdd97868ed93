"""Reductions along sharded dimensions that no collective combines, on host devices."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import numpy as np

import shardy_py as sdy
from tests.unit.dialects.stablehlo.local.on_devices import UNEVEN
from tests.unit.transforms.local.host_devices import compare_padded

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
    assert ("all_gather", "tensor<2x2xf32>") in kinds
    assert ("all_gather", "tensor<2x2xi32>") in kinds
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
