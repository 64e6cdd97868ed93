"""Shardings between attributes and the table."""

import pytest

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

from shardy_py.frontends.mlir import import_module, parse_module, print_module, verify_module, write_back
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.plugins import Registry
from shardy_py.sharding.parse import parse_tensor_sharding

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
REGISTRY = Registry.from_entry_points()


def _loaded(text):
    program = import_module(parse_module(MESH + text))
    load_shardings(program, REGISTRY)
    return program


def _stored(program):
    store_shardings(program, REGISTRY)
    module = write_back(program)
    verify_module(module)
    return print_module(module)


ALL_PLACES = """\
func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}, %b: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m, [{}, {"y", ?}]>}) {
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}, {?}]>]>} : tensor<4x8xf32>
  %1 = sdy.sharding_constraint %0 <@m, [{"y"}, {?}]> : tensor<4x8xf32>
  %4 = stablehlo.optimization_barrier %1 : tensor<4x8xf32>
  %2 = sdy.data_flow_edge %4 sharding=<@m, [{"x", "y"}, {?}]> : tensor<4x8xf32>
  %3 = sdy.manual_computation(%2) in_shardings=[<@m, [{"x"}, {}]>] out_shardings=[<@m, [{}, {"x"}]>]
      manual_axes={"x"} (%arg: tensor<2x8xf32>) {
    %5 = "t.op"(%arg) : (tensor<2x8xf32>) -> tensor<4x4xf32>
    sdy.return %5 : tensor<4x4xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  "t.nothing"() {sdy.sharding = #sdy.sharding_per_value<[]>} : () -> ()
  return %3, %a : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


def test_every_place_that_holds_a_sharding_is_read():
    """Arguments, function results, op results, constraints, edges, and the owners in region ops."""
    program = _loaded(ALL_PLACES)
    assert [str(program.shardings[value]) for value in sorted(program.shardings)] == [
        '<@m, [{"x"}, {}]>',
        '<@m, [{"x"}, {?}]>',
        '<@m, [{"y"}, {?}]>',
        '<@m, [{"x", "y"}, {?}]>',
        '<@m, [{}, {"x"}]>',
        "<@m, [{}, {}]>",
        '<@m, [{}, {"y", ?}]>',
    ]


def test_what_was_read_is_not_written_again():
    """Storing an unchanged table changes no attribute."""
    program = _loaded(ALL_PLACES)
    before = print_module(program.origin.module)
    store_shardings(program, REGISTRY)
    assert not program.origin.changed
    assert print_module(write_back(program)) == before


def test_a_changed_table_reaches_every_place():
    """Each value's entry is found again in the text; manual axes are no part of it and stay."""
    program = _loaded(ALL_PLACES)
    manual = next(op for op in program.walk() if op.name == "sdy.manual_computation")
    closed = parse_tensor_sharding("<@m, [{}, {}]>")
    for value in program.shardings:
        if value != manual.result.id:
            program.shardings[value] = closed
    text = _stored(program)
    assert text.count("<@m, [{}, {}]>") == 5
    assert 'in_shardings=[<@m, [{"x"}, {}]>] out_shardings=[<@m, [{}, {"x"}]>]' in text


def test_values_without_a_sharding_get_an_open_one_beside_others():
    """The attribute of an op has one per result, and other ops have none."""
    program = _loaded(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %0:3 = "t.op"(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>, !stablehlo.token)\n'
        '  %1 = "t.op"(%0#0) : (tensor<4xf32>) -> tensor<4xf32>\n  return %1 : tensor<4xf32>\n}'
    )
    op = program.functions["main"].regions[0].block.first
    program.shardings[op.results[0].id] = parse_tensor_sharding('<@m, [{"x"}]>')
    text = _stored(program)
    assert '#sdy.sharding_per_value<[<@m, [{"x"}]>, <@m, [{?}, {?}]>, <@m, []>]>' in text
    assert text.count("sdy.sharding =") == 1


def test_entries_that_are_gone_are_removed_from_the_attributes():
    """Of arguments with other attributes, only the sharding goes."""
    program = _loaded(
        'func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>, t.k = 1 : i8},\n'
        '    %b: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {\n'
        '  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<4xf32>\n'
        "  return %0 : tensor<4xf32>\n}"
    )
    program.shardings.clear()
    text = _stored(program)
    assert "sdy.sharding" not in text
    assert "t.k = 1 : i8" in text


def test_results_of_loops_hold_the_sharding_of_their_edge():
    """The owner of a loop's edge is its result."""
    program = _loaded(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %0 = "stablehlo.while"(%a) ({\n  ^bb0(%x: tensor<4xf32>):\n    %1 = "t.c"() : () -> tensor<i1>\n'
        "    stablehlo.return %1 : tensor<i1>\n  }, {\n  ^bb0(%x: tensor<4xf32>):\n"
        "    stablehlo.return %x : tensor<4xf32>\n  })"
        ' {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : (tensor<4xf32>) -> tensor<4xf32>\n'
        "  return %0 : tensor<4xf32>\n}"
    )
    loop = program.functions["main"].regions[0].block.first
    assert str(program.sharding(loop.result)) == '<@m, [{"x"}]>'
    program.shardings[loop.result.id] = parse_tensor_sharding('<@m, [{"y"}]>')
    assert '#sdy.sharding_per_value<[<@m, [{"y"}]>]>' in _stored(program)
