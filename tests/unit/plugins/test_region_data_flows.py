"""The data flow of ordinary loops."""

from __future__ import annotations

from shardy_py.ir import Builder, tensor
from shardy_py.plugins import BranchDataFlow, LoopDataFlow, OpOperand


def make_loop(operands, arguments, yielded, results):
    """Return a loop with so many operands, arguments, operands of its terminator, and results."""
    b = Builder()
    with b.function("main", [tensor(8)] * max(operands, yielded)) as values:
        with (
            b.region_op("toy.loop", values[:operands], [tensor(8)] * results) as loop,
            b.region(loop, [tensor(8)] * arguments),
        ):
            b.op("toy.yield", values[:yielded])
        b.return_()
    return loop


def test_carried_values_are_tied_by_their_order() -> None:
    """Operand, argument, yielded value and result of one number are one edge."""
    loop, flow = make_loop(2, 2, 2, 2), LoopDataFlow()
    block = loop.regions[0].block
    first, second = loop.results
    assert list(flow.get_edge_sources(loop, second)) == [OpOperand(loop, 1), OpOperand(block.terminator, 1)]
    assert list(flow.get_non_edge_owner_targets(loop, second)) == [block.arguments[1]]
    assert flow.get_edge_owner_from_target(loop, block.arguments[0]) is first
    assert flow.get_edge_owner_from_target(loop, second) is second
    assert flow.get_edge_owner_from_source(loop, OpOperand(block.terminator, 1)) is second


def test_bounds_counters_and_conditions_have_no_edge() -> None:
    """What stands before the carried values is skipped and belongs to no edge."""
    loop, flow = make_loop(3, 2, 2, 1), LoopDataFlow(first_operand=2, first_argument=1, first_yielded=1)
    block = loop.regions[0].block
    result = loop.result
    assert list(flow.get_edge_sources(loop, result)) == [OpOperand(loop, 2), OpOperand(block.terminator, 1)]
    assert list(flow.get_non_edge_owner_targets(loop, result)) == [block.arguments[1]]
    assert flow.get_edge_owner_from_target(loop, block.arguments[0]) is None
    assert flow.get_edge_owner_from_source(loop, OpOperand(loop, 1)) is None
    assert flow.get_edge_owner_from_source(loop, OpOperand(block.terminator, 0)) is None
    assert flow.get_edge_owner_from_target(loop, result) is result


def test_branches_tie_what_regions_hand_back() -> None:
    """Terminator operand and result of one number are one edge; operands and arguments belong to none."""
    branch, flow = make_loop(1, 1, 3, 2), BranchDataFlow(first_yielded=1)
    block = branch.regions[0].block
    first, second = branch.results
    assert list(flow.get_edge_sources(branch, second)) == [OpOperand(block.terminator, 2)]
    assert flow.get_edge_owner_from_target(branch, first) is first
    assert flow.get_edge_owner_from_target(branch, block.arguments[0]) is None
    assert flow.get_edge_owner_from_source(branch, OpOperand(branch, 0)) is None
    assert flow.get_edge_owner_from_source(branch, OpOperand(block.terminator, 0)) is None
    assert flow.get_edge_owner_from_source(branch, OpOperand(block.terminator, 1)) is first
    assert not list(flow.get_non_edge_owner_targets(branch, first))
