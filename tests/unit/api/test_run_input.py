"""Input of a run: which attributes are looked at."""

import pytest

import shardy_py as sdy
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.walk import ops_named
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorShardingPerValue

pytest.importorskip("jaxlib", reason="native modules need jaxlib")

from shardy_py.frontends.mlir import import_module, parse_module

MODULE = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32> ATTRIBUTES) -> tensor<4xf32> {
  %y = stablehlo.negate %x GIVEN : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
SDY = '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'
PER_VALUE = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>}'
EXPECTED = '<@mesh, [{"a"}]>'
GSPMD = '{mhlo.sharding = "{devices=[2]<=[2]}"}'


def text(*, argument: str = "", op: str = "") -> str:
    """Return the module with attributes of the argument and of its op."""
    return MODULE.replace("ATTRIBUTES", argument).replace("GIVEN", op)


@pytest.mark.parametrize(
    ("argument", "op"),
    [(SDY, ""), ("", PER_VALUE), (GSPMD, ""), ("", GSPMD), (SDY, PER_VALUE)],
    ids=["argument", "op", "GSPMD argument", "GSPMD op", "both"],
)
def test_shardings_are_found_wherever_they_are(argument: str, op: str) -> None:
    """On arguments and on ops, of Shardy and of GSPMD."""
    result = sdy.propagate(text(argument=argument, op=op))
    assert [str(item) for item in (*result.arguments, *result.results)] == [EXPECTED, EXPECTED]


def test_a_program_that_changed_since_it_was_read_is_looked_at_anew() -> None:
    """Attributes that nothing had when the program was read count when it is given."""
    program = import_module(parse_module(text()))
    assert program.attribute_names is not None
    assert SHARDING not in program.attribute_names
    (negate,) = ops_named(program, "stablehlo.negate")
    negate.attributes[SHARDING] = TensorShardingPerValue((parse_tensor_sharding(EXPECTED),))
    assert str(sdy.propagate(program).arguments[0]) == EXPECTED
    assert program.attribute_names is None
