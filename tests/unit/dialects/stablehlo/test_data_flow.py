"""The data-flow edges of loops, branches and barriers."""

from __future__ import annotations

from shardy_py.ir.graph.program import Block, Op, Program, Region
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import OpOperand
from tests.unit.dialects.stablehlo.ops import REGISTRY, arguments, make_op


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
