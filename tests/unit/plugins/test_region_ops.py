"""The data flow of ordinary loops."""

from __future__ import annotations

import pytest

from shardy_py.errors import PluginError
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


def make_branch(operands, taken, yielded):
    """Return a branch of two regions over so many operands, which take so many arguments."""
    b = Builder()
    with b.function("main", [tensor(8)] * operands) as values:
        with b.region_op("toy.if", values, [tensor(8)] * yielded) as branch:
            for _ in range(2):
                with b.region(branch, [tensor(8)] * taken):
                    b.op("toy.yield", values[:yielded])
        b.return_()
    return branch


def test_branches_may_take_operands_as_arguments() -> None:
    """From first_operand on, an operand and the arguments of its number are one edge, which the first argument owns."""
    branch, flow = make_branch(3, 2, 1), BranchDataFlow(first_operand=1)
    first, second = (region.block for region in branch.regions)
    assert list(flow.get_block_argument_edge_owners(branch)) == list(first.arguments)
    assert list(flow.get_edge_sources(branch, first.arguments[1])) == [OpOperand(branch, 2)]
    assert list(flow.get_non_edge_owner_targets(branch, first.arguments[1])) == [second.arguments[1]]
    assert flow.get_edge_owner_from_target(branch, second.arguments[0]) is first.arguments[0]
    assert flow.get_edge_owner_from_source(branch, OpOperand(branch, 1)) is first.arguments[0]
    assert flow.get_edge_owner_from_source(branch, OpOperand(branch, 0)) is None
    assert flow.get_edge_owner_from_source(branch, OpOperand(first.terminator, 0)) is branch.result


def test_results_behind_the_carried_ones_are_stacked() -> None:
    """Where a loop says how many values it carries, what it yields, takes and returns behind them is on no edge."""
    loop, flow = make_loop(3, 3, 3, 3), LoopDataFlow(carried=1)
    block = loop.regions[0].block
    assert list(flow.get_op_result_edge_owners(loop)) == [loop.results[0]]
    assert list(flow.get_edge_sources(loop, loop.results[0])) == [OpOperand(loop, 0), OpOperand(block.terminator, 0)]
    for number in (1, 2):
        assert flow.get_edge_owner_from_target(loop, block.arguments[number]) is None
        assert flow.get_edge_owner_from_target(loop, loop.results[number]) is None
        assert flow.get_edge_owner_from_source(loop, OpOperand(loop, number)) is None
        assert flow.get_edge_owner_from_source(loop, OpOperand(block.terminator, number)) is None


@pytest.mark.parametrize("make", [lambda: BranchDataFlow(first_operand=-1), lambda: LoopDataFlow(carried=True)])
def test_numbers_are_counted_from_0(make) -> None:
    """Numbers of operands and of carried values are integers from 0 on."""
    with pytest.raises(PluginError, match="not a number of 0 or more"):
        make()
