"""Collectives of block arguments of ops whose data flow the reference does not know."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.frontends.mlir import parse_module, print_module
from shardy_py.testing import run_sharded

TOY = sdy.Dialect("toy")
TOY.op("toy.cumsum", rule="i j -> i j", need_replication="i", traits=[sdy.Pure])
TOY.op("toy.add", traits=[sdy.Elementwise, sdy.Pure])
TOY.op("toy.loop", data_flow=sdy.LoopDataFlow(), traits=[sdy.RecursiveMemoryEffects])
TOY.op("toy.yield", traits=[sdy.IsTerminator, sdy.Pure])

LOOP = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<4x6xf32> {
  %0 = "toy.loop"(%arg0) ({
  ^bb0(%arg1: tensor<4x6xf32>):
    %1 = "toy.cumsum"(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "toy.cumsum"(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %3 = "toy.add"(%1, %2) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    "toy.yield"(%3) : (tensor<4x6xf32>) -> ()
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
"""

WHILE = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.while(%arg1 = %arg0) : tensor<4x6xf32> cond {
    %1 = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.custom_call @own(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    stablehlo.return %1 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}
"""


@pytest.fixture(name="plugin")
def _plugin():
    class Toy:
        @sdy.hookimpl
        def shardy_register_dialects(self):
            return [TOY]

    return Toy()


def test_a_collective_of_an_argument_finds_its_sharding_on_a_reshard(plugin):
    """There is one reshard for all collectives of an argument, and the module can be read again."""
    result = sdy.propagate(LOOP, plugins=[plugin], explicit_collectives=True)
    text = print_module(parse_module(print_module(result.module)))
    assert text.count('sdy.reshard %arg1 <@mesh, [{"a"}, {"b"}]>') == text.count("sdy.reshard") == 1
    name = re.search(r"(%\d+) = sdy.reshard", text)[1]
    assert text.count(f'sdy.all_gather [{{"a"}}, {{}}] {name} out_sharding') == text.count("sdy.all_gather") == 2


def test_loops_that_the_reference_knows_have_no_such_reshard():
    """The reference finds the shardings of a while op itself."""
    result = sdy.propagate(WHILE, explicit_collectives=True)
    text = print_module(result.module)
    assert 'sdy.all_gather [{"a"}, {}] %iterArg' in text
    assert "sdy.reshard" not in text


def test_a_loop_of_another_dialect_runs_on_its_shards(plugin):
    """The reshard moves nothing: what devices run are the collectives."""

    def loop(value, regions):
        return regions[0](regions[0](value))

    functions = {"toy.cumsum": lambda value: np.cumsum(value, 0), "toy.add": np.add, "toy.loop": loop}
    run = run_sharded(LOOP, functions, plugins=[plugin])
    assert run.ok, str(run)
    assert "all_gather" in run.collectives
