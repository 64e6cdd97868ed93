"""What regions compute and where values flow: combiners of reductions, edges of loops, branches and barriers."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.api.source import read_program
from shardy_py.ir.graph.program import Block, Op, Program, Region
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import OpOperand
from shardy_py.sharding.combiner import Combiner
from tests.unit.dialects.stablehlo.ops import arguments, make_op

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
    rule, actual = reductions(text, "stablehlo.reduce")
    assert str(rule) == "<([i, j], [])->([i]) {i=8, j=4} reduction={j}>"
    assert dict(actual.combiners) == {1: expected}
    assert actual.initial_operands == (1,)
    assert not actual.shape_collectives


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
    _, actual = reductions(text, "stablehlo.reduce")
    assert set(actual.combiners.values()) == {None}


def make_region(program: Program, argument_types, returned=None):
    """A region that returns its arguments, or the given values."""
    block = Block(program, argument_types)
    block.append(Op(program, "stablehlo.return", block.arguments if returned is None else returned))
    return Region([block])


def test_a_loop_ties_its_initial_value_body_and_arguments_to_its_result():
    """The sources of a loop's edge are operand and yielded value, its other targets the arguments of both regions."""
    values = arguments((4,), (8,))
    program = values[0].owner.parent_op.program
    types = [value.type for value in values]
    condition, body = make_region(program, types), make_region(program, types)
    op = Op(program, "stablehlo.while", values, types, regions=[condition, body])
    flow = REGISTRY.get_data_flow(op)
    owner = op.results[1]
    terminator = body.block.terminator
    assert list(flow.get_op_result_edge_owners(op)) == list(op.results)
    assert list(flow.get_edge_sources(op, owner)) == [OpOperand(op, 1), OpOperand(terminator, 1)]
    assert list(flow.get_non_edge_owner_targets(op, owner)) == [
        condition.block.arguments[1],
        body.block.arguments[1],
    ]
    for target in (owner, condition.block.arguments[1], body.block.arguments[1]):
        assert flow.get_edge_owner_from_target(op, target) is owner
    for source in flow.get_edge_sources(op, owner):
        assert flow.get_edge_owner_from_source(op, source) is owner


def test_branches_flow_into_the_result():
    """The sources of a branching op's edge are what its branches yield, in order."""
    x, y, index = arguments((4,), (4,), tensor(dtype="i32"))
    program = x.owner.parent_op.program
    regions = [make_region(program, [], [value]) for value in (x, y)]
    op = Op(program, "stablehlo.case", [index], [x.type], regions=regions)
    flow = REGISTRY.get_data_flow(op)
    sources = list(flow.get_edge_sources(op, op.result))
    assert sources == [OpOperand(region.block.terminator, 0) for region in regions]
    assert [flow.get_edge_owner_from_source(op, source) for source in sources] == [op.result] * 2
    assert flow.get_edge_owner_from_target(op, op.result) is op.result
    assert flow.get_edge_owner_from_target(op, x) is None
    assert list(flow.get_non_edge_owner_targets(op, op.result)) == []


def test_a_barrier_ties_each_operand_to_its_result():
    """The source of each edge of an optimization barrier is the operand of the same number."""
    op = make_op("optimization_barrier", [(4,), (8,)], [(4,), (8,)])
    flow = REGISTRY.get_data_flow(op)
    assert list(flow.get_edge_sources(op, op.results[1])) == [OpOperand(op, 1)]
    assert flow.get_edge_owner_from_source(op, OpOperand(op, 1)) is op.results[1]


def test_the_two_way_branch_has_no_data_flow():
    """As in the reference, values do not flow through ``stablehlo.if``."""
    assert REGISTRY.get_data_flow(make_op("if", [tensor(dtype="i1")], [(4,)])) is None
