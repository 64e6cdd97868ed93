"""Input of a run: its attributes, and programs with several blocks or maximal shardings."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="native modules need jaxlib")


import shardy_py as sdy
from shardy_py.cli import opt
from shardy_py.cost.session import Session
from shardy_py.errors import UnsupportedError
from shardy_py.frontends.mlir import MLIR, import_module, parse_module
from shardy_py.frontends.op_graphs import PROGRAM
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.walk import ops_named
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorShardingPerValue

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


def test_types_hold_until_somebody_else_has_the_program() -> None:
    """A frontend that has just read a program knows all types; of one that a caller gives nobody does."""
    program = MLIR.import_program(text())
    assert set(program.known_types() or ()) >= {value.type for op in program.walk() for value in op.results}
    assert PROGRAM.import_program(program) is program
    assert program.known_types() is None


BRANCH = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  cf.br ^bb1
^bb1:
  %1 = stablehlo.negate %a : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
MAXIMAL = """sdy.mesh @mesh = <["x"=2]>
sdy.mesh @one = <[], device_ids=[0]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, []>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  %1 = stablehlo.custom_call @f(%0) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.negate %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
"""


@pytest.mark.parametrize("option", ["trace", "dedup_functions_fully", "explicit_collectives", "strict"])
def test_branches_are_refused(option: str) -> None:
    """A function of several blocks is an error with its place, whatever is asked for."""
    with pytest.raises(UnsupportedError, match="has 2 blocks") as error:
        sdy.propagate(BRANCH, **{option: True})
    assert error.value.diagnostics[0].location == "-:2:1"


def test_branches_are_refused_everywhere(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    """Sessions and single passes refuse them, too; a command without passes prints the module."""
    with pytest.raises(UnsupportedError, match="has 2 blocks"):
        Session.open(BRANCH)
    path = tmp_path / "m.mlir"
    path.write_text(BRANCH)
    assert opt.main(["-sdy-propagation-pipeline", str(path)]) == 1
    assert "has 2 blocks" in capsys.readouterr().err
    assert opt.main([str(path)]) == 0


@pytest.mark.parametrize("value", ["arg0", "arg1", "%0", "%1", "%2", "result0"])
def test_maximal_shardings_are_explained(value: str) -> None:
    """Tensors on one device, and those beside them, have an explanation for each dimension."""
    result = sdy.propagate(MAXIMAL, trace=True)
    explanation = result.explain(value, names="input")
    assert len(explanation.dimensions) == 1
    assert str(explanation)
