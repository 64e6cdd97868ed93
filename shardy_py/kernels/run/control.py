"""Control flow: structured ops, calls, and blocks that branch to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import cf, func, llvm, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import VariableKind
from shardy_py.ir.graph.op_names import CALL
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp
from shardy_py.kernels.run.frame import Frame, Handler
from shardy_py.kernels.run.memory import Value
from shardy_py.kernels.run.values import array_dtype

Branch = tuple[Any, Region]


def _branched(frame: Frame, branches: Sequence[Branch], results: Sequence[SSAValue]) -> list[Value]:
    """Run each region with the threads that take it, and return the merged values."""
    merged: list[Value] | None = None
    for condition, region in branches:
        mask = frame.active(condition)
        if not frame.is_any(mask) or not region.blocks:
            continue
        with frame.under(mask):
            branch_values = frame.run(region)
        if merged is None:
            merged = branch_values
            continue
        triples = zip(branch_values, merged, results, strict=True)
        merged = [frame.merged(condition, new, old, result) for new, old, result in triples]
    return merged or []


def if_(frame: Frame, op: scf.IfOp) -> list[Value]:
    """Run the region of each branch with its threads."""
    condition = frame.get(op.cond)
    branches = [(condition, op.true_region), (np.logical_not(condition), op.false_region)]
    return _branched(frame, branches, op.results)


def index_switch(frame: Frame, op: scf.IndexSwitchOp) -> list[Value]:
    """Run the region of each case with its threads, then the default one with the others."""
    chosen, rest = frame.get(op.arg), np.True_
    branches: list[Branch] = []
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        branches.append((chosen == case, region))
        rest = rest & (chosen != case)
    return _branched(frame, [*branches, (rest, op.default_region)], op.results)


def for_(frame: Frame, op: scf.ForOp) -> list[Value]:
    """Run the body until no thread has a trip left."""
    lower, upper, step = frame.get(op.lb), frame.get(op.ub), frame.get(op.step)
    carried = frame.gets(op.iter_args)
    if all(np.ndim(bound) == 0 for bound in (lower, upper, step)):
        dtype = array_dtype(op.lb.type)
        for number in range(int(lower), int(upper), int(step)):
            carried = frame.run(op.body, [dtype(number), *carried])
        return carried
    index = np.broadcast_to(lower, (frame.threads.count,))
    while frame.is_any(mask := frame.active(index < upper)):
        with frame.under(mask):
            trip_values = frame.run(op.body, [index, *carried])
        carried = _joined(frame, mask, trip_values, carried, op.results)
        index = index + step
    return carried


def while_(frame: Frame, op: scf.WhileOp) -> list[Value]:
    """Run condition and body until no thread has a trip left; threads that are done keep what they had."""
    carried, passed = frame.gets(op.arguments), None
    mask = frame.mask
    while frame.is_any(mask):
        with frame.under(mask):
            terminator = _condition_of(frame, op.before_region, carried)
            new = frame.gets(terminator.args)
            going = frame.active(frame.get(terminator.condition))
            passed = new if passed is None else _joined(frame, mask, new, passed, op.results)
            if not frame.is_any(going):
                break
            with frame.under(going):
                trip_values = frame.run(op.after_region, new)
            carried = _joined(frame, going, trip_values, carried, terminator.args)
        mask = going
    return passed or []


def _condition_of(frame: Frame, region: Region, carried: Sequence[Value]) -> scf.ConditionOp:
    terminator = frame.run_block(region.block, carried)
    assert isinstance(terminator, scf.ConditionOp)
    return terminator


def _joined(
    frame: Frame, mask: Any, new: Sequence[Value], old: Sequence[Value], typed: Sequence[SSAValue]
) -> list[Value]:
    """Return values of threads: new ones where the mask holds, such as after a trip of a loop, old ones elsewhere."""
    if mask is None:
        return list(new)
    return [
        frame.merged(mask, new_value, old_value, value)
        for new_value, old_value, value in zip(new, old, typed, strict=True)
    ]


def loop(frame: Frame, op: LoopOp) -> list[Value]:
    """Run the body for all values of the map's symbols, the last fastest, with the threads in the domain."""
    map_ = op.map
    dims = frame.gets(op.dims)
    carried = frame.gets(op.inits)
    kinds = (VariableKind.RANGE, VariableKind.RUNTIME)
    trips = [range(item.interval.lower, item.interval.upper + 1) for kind in kinds for item in map_.bounds(kind)]
    count = len(map_.ranges)
    for numbers in product(*trips):
        symbols = [np.int64(number) for number in numbers]
        mask = frame.active(map_.holds(dims, symbols[:count], symbols[count:]))
        if not frame.is_any(mask):
            continue
        results = map_.evaluate(dims, symbols[:count], symbols[count:])
        indices = [np.int64(value) if isinstance(value, int) else value for value in results]
        with frame.under(mask):
            new = frame.run(op.body, [*symbols, *indices, *carried])
        carried = _joined(frame, mask, new, carried, op.results)
    return carried


def pure_call(frame: Frame, op: PureCallOp) -> list[Value]:
    """Run a function of the module."""
    return frame.call(op.callee.string_value(), frame.gets(op.arguments), op)


def call(frame: Frame, op: func.CallOp) -> list[Value]:
    """Run a function of the module."""
    return frame.call(op.callee.string_value(), frame.gets(op.arguments), op)


def llvm_call(frame: Frame, op: llvm.CallOp) -> list[Value]:
    """Run a function of the module.

    Raises:
        UnsupportedError: the callee is a pointer.
    """
    if op.callee is None:
        message = "calls through pointers are not run"
        raise UnsupportedError(Diagnostic("run-unknown-function", message, frame.kernel.stage, op.name))
    return frame.call(op.callee.string_value(), frame.gets(op.args), op)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        CALL: call,
        "llvm.call": llvm_call,
        "scf.for": for_,
        "scf.if": if_,
        "scf.index_switch": index_switch,
        "scf.while": while_,
        "xla_gpu.loop": loop,
        "xla_gpu.pure_call": pure_call,
    }
)


def branch_targets(frame: Frame, op: Operation) -> Iterator[tuple[Block, Any, list[Value]]]:
    """Yield the blocks that threads go to, which threads, and what they pass.

    Raises:
        UnsupportedError: the terminator is unknown.
    """
    if isinstance(op, cf.BranchOp | llvm.BrOp):
        yield op.successor, frame.mask, frame.gets(op.arguments)
    elif isinstance(op, cf.ConditionalBranchOp | llvm.CondBrOp):
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
                operands = frame.gets(terminator.operands)
                returned = (
                    operands if returned is None else _joined(frame, mask, operands, returned, terminator.operands)
                )
                continue
            for target, going, passed in branch_targets(frame, terminator):
                if not frame.is_any(going):
                    continue
                if target not in waiting:
                    waiting[target] = (going, passed)
                    continue
                target_mask, before = waiting[target]
                joined = _joined(frame, going, passed, before, target.args)
                waiting[target] = (_either(going, target_mask), joined)
    frame.merges = outer
    return returned or []


def _either(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return None
    both = one | other
    return None if both.all() else both


def _reverse_post_order(entry: Block) -> list[Block]:
    """Return the blocks that can be reached, each before those that it leads to, but for loops."""
    post_order: list[Block] = []
    seen = {entry}
    pending: list[tuple[Block, Iterator[Block]]] = [(entry, iter(_successors(entry)))]
    while pending:
        block, following = pending[-1]
        target = next((item for item in following if item not in seen), None)
        if target is None:
            post_order.append(block)
            pending.pop()
            continue
        seen.add(target)
        pending.append((target, iter(_successors(target))))
    return post_order[::-1]


def _successors(block: Block) -> Sequence[Block]:
    """Return where a block leads to, the last one first: so a loop's body stands before what follows the loop."""
    return block.last_op.successors[::-1] if block.last_op is not None else ()
