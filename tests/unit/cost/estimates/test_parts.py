"""Reductions that other ones contain; the figures are those of jaxlib 0.10.2, for programs of JAX."""

from __future__ import annotations

import pytest

from shardy_py.errors import PluginError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plugins import CostOpInterface, Dialect, Registry

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

EXTREME = """
  %m = stablehlo.reduce(%y init: %low) applies stablehlo.OP across dimensions = [DIM]
    : (tensor<64x128xTYPE>, tensor<TYPE>) -> tensor<SIZExTYPE>"""
PLACE = """
  %i = stablehlo.iota dim = 1 : tensor<64x128xi32>
  %p:2 = stablehlo.reduce(%y init: %low), (%i init: %zero) across dimensions = [1]
    : (tensor<64x128xTYPE>, tensor<64x128xi32>, tensor<TYPE>, tensor<i32>) -> (tensor<64xTYPE>, tensor<64xi32>)
    reducer(%a: tensor<TYPE>, %b: tensor<TYPE>) (%c: tensor<i32>, %d: tensor<i32>)  {
      %0 = stablehlo.compare FIRST, %a, %b : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %1 = stablehlo.compare NE, %a, %a : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %2 = stablehlo.or %0, %1 : tensor<i1>
      %3 = stablehlo.compare EQ, %a, %b : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      %4 = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.and %3, %4 : tensor<i1>
      %6 = stablehlo.or %2, %5 : tensor<i1>
      %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<TYPE>
      %8 = stablehlo.select %6, %c, %d : tensor<i1>, tensor<i32>
      stablehlo.return %7, %8 : tensor<TYPE>, tensor<i32>
    }"""
TEXT = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%xSHARDING: tensor<64x128xTYPE>GIVEN) -> (tensor<SIZExTYPE>, tensor<64xi32>) {
  %low = stablehlo.constant dense<LOW> : tensor<TYPE>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.multiply %x, %x : tensor<64x128xTYPE>
BODY
  return %m, %p#1 : tensor<SIZExTYPE>, tensor<64xi32>
}"""
PLACES = 64 * 127 * 9
EXTREMES = 64 * 127
SQUARES = 64 * 128


def _cost(order=(EXTREME, PLACE), op="maximum", first="GT", dim=1, type_="f32", low="0xFF800000", insert=""):
    text = TEXT.replace("BODY", "".join(order)).replace("SHARDING", "").replace("GIVEN", insert).replace("LOW", low)
    names = {"OP": op, "FIRST": first, "DIM": str(dim), "SIZE": str((64, 128)[1 - dim]), "TYPE": type_}
    for name, value in names.items():
        text = text.replace(name, value)
    return Session.open(text).evaluate(profile="xla-cpu", partitioner="xla").cost


@pytest.mark.parametrize("order", [(EXTREME, PLACE), (PLACE, EXTREME)])
@pytest.mark.parametrize(("op", "first"), [("maximum", "GT"), ("minimum", "LT")])
def test_the_largest_numbers_are_found_with_their_places(order, op, first):
    """XLA's figures for maxima and places of the same squares are 81344 operations and 33296 bytes."""
    cost = _cost(order, op, first)
    assert cost.flops.value == PLACES + SQUARES == 81344
    assert cost.memory_traffic_bytes.value == 33280


@pytest.mark.parametrize("other", [{"op": "minimum"}, {"first": "GE"}, {"type_": "bf16", "low": "0xFF80"}, {"dim": 0}])
def test_other_extremes_are_found_alone(other):
    """Minima, what no place of JAX finds, narrow types and other dimensions are reduced by themselves."""
    reductions = [item.flops for item in _cost(**other).ops if item.name == "stablehlo.reduce"]
    assert len(reductions) == 2
    assert sum(reductions) >= PLACES + min(EXTREMES, 128 * 63)


def test_a_maximum_over_devices_is_found_alone():
    """Where rows are divided, parts are reduced before all devices take the largest ones."""
    sharding = ' {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    cost = _cost(insert=sharding)
    assert "all_reduce" in [item.kind for item in cost.transfers]
    assert next(item.flops for item in cost.ops if item.name == "stablehlo.reduce") == 64 * 31 + 64 * 32


def test_integers_are_never_compared_with_themselves():
    """XLA's figure is 65024 for integers without the squares: maxima apart, two operations less for each place."""
    assert _cost(type_="i32", low="-2147483648").flops.value == 65024 + 2 * SQUARES


class PairCost(CostOpInterface):
    """A cost that says of its results what a test wants."""

    def __init__(self, parts):
        self._parts = parts

    def get_parts(self, op):
        return self._parts


@pytest.mark.parametrize("parts", [3, "text", ["toy"], [("toy", 0)], [("toy", (4,))], [(3, (0,))], [None, None]])
def test_a_plugin_says_computations_of_its_results(parts):
    """What is no list of names with numbers of operands, one for each result, is refused."""
    toy = Dialect("toy")
    toy.op("toy.one", cost=PairCost(parts))
    program = Program()
    (value,) = Op(program, "toy.source", (), ("tensor<4xf32>",), {}).results
    op = Op(program, "toy.one", (value,), ("tensor<4xf32>",), {})
    cost = Registry.build([("the test", toy)]).get_cost(op)
    with pytest.raises(PluginError, match="get_parts"):
        cost.get_parts(op)
