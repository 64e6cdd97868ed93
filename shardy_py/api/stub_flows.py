"""Guessed data flow of ops with regions, for stub plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import fields

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import Type
from shardy_py.plugins import BranchDataFlow, LoopDataFlow
from shardy_py.plugins.check_data_flow import data_flow_problems


def is_unmarked_terminator(op: Op) -> bool:
    """Return whether an op ends the block of an op with regions, other than a function, and hands something out."""
    block = op.parent
    parent = None if block is None else block.parent_op
    if parent is None or parent.name == FUNCTION or op.next is not None:
        return False
    return bool(op.operands) and not op.results and not op.regions


def guess_data_flow(ops: Sequence[Op]) -> str:
    """Return a text that makes a data flow that is valid for all of some ops of one name, "" where none is found.

    Operands, arguments, what regions hand back and results are tied where their types are the same, in order.
    """
    for flow in _candidates(ops[0]):
        is_loop = isinstance(flow, LoopDataFlow)
        if all((_is_loop(op, flow) if is_loop else _is_branch(op, flow)) for op in ops) and _is_valid(ops, flow):
            return _text(flow)
    return ""


def _is_valid(ops: Sequence[Op], flow: LoopDataFlow | BranchDataFlow) -> bool:
    return not any(list(data_flow_problems(op, flow)) for op in ops)


def _candidates(op: Op) -> Iterator[LoopDataFlow | BranchDataFlow]:
    """Yield loops and branches, the ordinary ones first: carried values come last."""
    count = len(op.results)
    blocks = _blocks(op)
    arguments = max((len(block.arguments) for block in blocks), default=0)
    yielded = max((len(_yielded(block)) for block in blocks), default=0)
    for yielding in (None, *((number,) for number in range(len(op.regions)))) if count else ():
        for first_operand in _offsets(len(op.operands), count):
            for first_argument in _offsets(arguments, count):
                for first_yielded in _offsets(yielded, count):
                    yield LoopDataFlow(first_operand, first_argument, first_yielded, yielding=yielding)
    for first_yielded in _offsets(yielded, count):
        for first_operand in _offsets(len(op.operands), arguments) if arguments else ():
            yield BranchDataFlow(first_yielded, first_operand=first_operand)
        yield BranchDataFlow(first_yielded)


def _offsets(available: int, count: int) -> list[int]:
    """Return where so many values may begin, the last place first."""
    return list(range(max(available - count, 0), -1, -1))


def _is_loop(op: Op, flow: LoopDataFlow | BranchDataFlow) -> bool:
    if not isinstance(flow, LoopDataFlow):
        return False
    wanted = _types(op.results)
    if not wanted or _slice(op.operands, flow.first_operand, len(wanted)) != wanted:
        return False
    blocks = _blocks(op)
    has_arguments = any(block.arguments for block in blocks)
    if not has_arguments and len(op.operands) != len(wanted):
        return False
    if has_arguments and any(_slice(block.arguments, flow.first_argument, len(wanted)) != wanted for block in blocks):
        return False
    numbers = range(len(op.regions)) if flow.yielding is None else flow.yielding
    ends = [
        _yielded(region.blocks[0]) for number, region in enumerate(op.regions) if region.blocks and number in numbers
    ]
    return bool(ends) and all(_slice(end, flow.first_yielded, len(wanted)) == wanted for end in ends)


def _is_branch(op: Op, flow: LoopDataFlow | BranchDataFlow) -> bool:
    wanted, first_operand = _types(op.results), getattr(flow, "first_operand", None)
    ends = [_yielded(block) for block in _blocks(op)]
    if first_operand is not None:
        taken = _types(op.operands[first_operand:])
        if any(_types(block.arguments) != taken for block in _blocks(op)):
            return False
    return all(_slice(end, flow.first_yielded, len(wanted)) == wanted for end in ends)


def _blocks(op: Op) -> list[Block]:
    return [region.blocks[0] for region in op.regions if region.blocks]


def _yielded(block: Block) -> Sequence[Value]:
    return block.terminator.operands if block.terminator is not None else ()


def _types(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def _slice(values: Sequence[Value], first: int, count: int) -> list[Type]:
    return _types(values[first : first + count])


def _text(flow: LoopDataFlow | BranchDataFlow) -> str:
    values = ((item.name, getattr(flow, item.name), item.default) for item in fields(type(flow)))
    given = [f"{name}={value!r}" for name, value, default in values if value != default]
    return f"sdy.{type(flow).__name__}({', '.join(given)})"
