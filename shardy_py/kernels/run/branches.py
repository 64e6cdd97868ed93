"""Blocks that branch to each other, by ``cf.br``, ``cf.cond_br`` and ``cf.switch``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import cf
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.run.frame import Frame
from shardy_py.kernels.run.memory import Value


def branch_targets(frame: Frame, op: Operation) -> Iterator[tuple[Block, Any, list[Value]]]:
    """Yield the blocks that threads go to, which threads, and what they pass.

    Raises:
        UnsupportedError: the terminator is unknown.
    """
    if isinstance(op, cf.BranchOp):
        yield op.successor, frame.mask, frame.gets(op.arguments)
    elif isinstance(op, cf.ConditionalBranchOp):
        condition = frame.get(op.cond)
        yield op.then_block, frame.active(condition), frame.gets(op.then_arguments)
        yield op.else_block, frame.active(np.logical_not(condition)), frame.gets(op.else_arguments)
    elif isinstance(op, cf.SwitchOp):
        flag, rest = frame.get(op.flag), np.True_
        cases = op.case_values.get_values() if op.case_values is not None else ()
        for value, block, operands in zip(cases, op.case_blocks, op.case_operand, strict=True):
            yield block, frame.active(flag == value), frame.gets(operands)
            rest = rest & (flag != value)
        yield op.default_block, frame.active(rest), frame.gets(op.default_operands)
    else:
        message = "the interpreter of kernels does not know the terminator"
        raise UnsupportedError(Diagnostic("run-unknown-op", message, frame.kernel.stage, op.name))


def run_branches(frame: Frame, blocks: list[Block], arguments: Sequence[Value]) -> list[Value]:
    """Run blocks that branch to each other; threads meet again where their paths do.

    Of the blocks that threads wait for, the first in the order of the region is run: loops run until no thread is in
    them, and a block after two branches waits for both.
    """
    everyone = frame.mask
    order = {block: number for number, block in enumerate(_reverse_post_order(blocks[0]))}
    waiting: dict[Block, tuple[Any, list[Value]]] = {blocks[0]: (everyone, list(arguments))}
    returned: list[Value] | None = None
    outer, frame.merges = frame.merges, True
    while waiting:
        block = min(waiting, key=order.__getitem__)
        mask, values = waiting.pop(block)
        with frame.under(mask):
            terminator = frame.run_block(block, values)
            if not terminator.successors:
                found = frame.gets(terminator.operands)
                returned = found if returned is None else _joined(frame, mask, found, returned, terminator.operands)
                continue
            for target, going, passed in branch_targets(frame, terminator):
                if not frame.is_any(going):
                    continue
                if target not in waiting:
                    waiting[target] = (going, passed)
                    continue
                there, before = waiting[target]
                joined = _joined(frame, going, passed, before, target.args)
                waiting[target] = (_either(going, there), joined)
    frame.merges = outer
    return returned or []


def _either(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return None
    both = one | other
    return None if both.all() else both


def _joined(
    frame: Frame, mask: Any, new: Sequence[Value], old: Sequence[Value], typed: Sequence[SSAValue]
) -> list[Value]:
    if mask is None:
        return list(new)
    return [frame.merged(mask, one, other, value) for one, other, value in zip(new, old, typed, strict=True)]


def _reverse_post_order(entry: Block) -> list[Block]:
    """Return the blocks that can be reached, each before those that it leads to, but for loops."""
    found: list[Block] = []
    seen = {entry}
    pending: list[tuple[Block, Iterator[Block]]] = [(entry, iter(_successors(entry)))]
    while pending:
        block, following = pending[-1]
        target = next((item for item in following if item not in seen), None)
        if target is None:
            found.append(block)
            pending.pop()
            continue
        seen.add(target)
        pending.append((target, iter(_successors(target))))
    return found[::-1]


def _successors(block: Block) -> Sequence[Block]:
    """Return where a block leads to, the last one first: so a loop's body stands before what follows the loop."""
    return block.last_op.successors[::-1] if block.last_op is not None else ()
