"""Loops that all threads run equally often, on the host: all threads run a step before the first one runs the next.

LLVM makes vectors of innermost loops. Where a thread walks down a column, the loop over threads has to be the
innermost one, so that neighbours read neighbours. POCL calls this horizontal parallelization of inner loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, builtin, cf, func, llvm
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.kernels.dialect.gpu import BarrierOp, ShuffleOp
from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.lower.control import successors
from shardy_py.kernels.passes.base import constant_value, has_no_effects
from shardy_py.values import frozen

REGROUP = "host.regroup"
_LESS_SIGNED = 2


@frozen(eq=False)
class _Loop:
    """A loop by a number that begins, grows and ends the same for all threads.

    Args:
        before: The block that enters it.
        header: The block that compares the number.
        body: The first block of a step.
        latch: The last one.
        after: The block behind it.
    """

    before: Block
    header: Block
    body: Block
    latch: Block
    after: Block


@frozen(eq=False)
class CountedLoop:
    """A loop whose number takes the same values in every thread.

    Args:
        number: The number that it goes by.
        values: What the number is in the steps.
        steps: The blocks of a step, in which the number is one of them.
    """

    number: SSAValue
    values: range
    steps: frozenset[Block]


@frozen(eq=False)
class Counter:
    """The number that a loop goes by.

    Args:
        value: The number.
        start: Its value in the first step.
        step: How much it grows.
        wait: Where threads wait before each step.
    """

    value: SSAValue
    start: int
    step: int
    wait: Operation


def regroup_loops(function: func.FuncOp) -> list[Counter]:
    """Let threads wait for each other before each step of a loop, and behind it, in functions where they wait anyway.

    Args:
        function: The entry function after the last pass; it is changed.

    Returns:
        The induction variables of these loops.
    """
    if not any(isinstance(op, BarrierOp | ShuffleOp | ShuffleReduceOp) for op in function.walk()):
        return []
    counters: list[Counter] = []
    while (loop := _next_loop(function, {counter.value for counter in counters})) is not None:
        start, step = _bounds(loop)
        body = loop.body
        if not _is_always_reached(function, loop.before):
            body = _enter_always(loop, _condition(function, loop), step)
        counters.append(Counter(loop.header.args[0], start, step, _wait_before(body)))
        _wait_before(loop.after)
    return counters


def _next_loop(function: func.FuncOp, done: set[SSAValue]) -> _Loop | None:
    """Return an innermost loop without waits that is entered once, by all threads or where a condition holds."""
    for loop, steps in _loops(function):
        users = {use.operation.parent for use in loop.header.args[0].uses}
        if not _is_innermost(steps) or not users <= {loop.header, *steps}:
            continue
        is_new = loop.header.args[0] not in done and loop.before not in _reached(loop.after)
        if is_new and (_is_always_reached(function, loop.before) or _condition(function, loop) is not None):
            return loop
    return None


def _condition(function: func.FuncOp, loop: _Loop) -> cf.ConditionalBranchOp | None:
    """Return the branch that decides whether a thread enters a loop, if what is computed before it harms no thread."""
    before = _predecessors(function)[loop.before]
    if len(before) != 1 or loop.before.args or not _is_always_reached(function, before[0]):
        return None
    end = before[0].last_op
    is_harmless = all(is_pure(op) for op in loop.before.ops if op is not loop.before.last_op)
    is_found = isinstance(end, cf.ConditionalBranchOp) and end.then_block is loop.before is not end.else_block
    return end if isinstance(end, cf.ConditionalBranchOp) and is_found and is_harmless else None


def _enter_always(loop: _Loop, branch: cf.ConditionalBranchOp | None, step: int) -> Block:
    """Let all threads enter a loop, and do its steps where a condition holds; return the first block of a step."""
    assert branch is not None
    region, outer, end = loop.header.parent, branch.parent, loop.header.last_op
    assert region is not None
    assert outer is not None
    assert isinstance(end, cf.ConditionalBranchOp)
    number, *carried = loop.header.args
    condition, other, passed = branch.cond, branch.else_block, list(branch.else_arguments)
    _end_by(outer, cf.BranchOp(loop.before))
    # A step ends in a block of its own, which threads that do nothing go to at once.
    last = Block(arg_types=[value.type for value in carried])
    first = Block()
    region.add_block([first, last])
    _, *values = _passed(loop.latch, loop.header)
    _end_by(loop.latch, cf.BranchOp(last, *values))
    assert isinstance(number.type, builtin.IndexType | builtin.IntegerType)
    by = arith.ConstantOp(builtin.IntegerAttr(step, number.type))
    grown = arith.AddiOp(number, by.result)
    last.add_ops([by, grown, cf.BranchOp(loop.header, grown.result, *last.args)])
    first.add_op(cf.ConditionalBranchOp(condition, loop.body, [], last, carried))
    _end_by(loop.header, cf.ConditionalBranchOp(end.cond, first, [], loop.after, list(end.else_arguments)))
    begin = loop.after.first_op
    assert begin is not None
    behind = loop.after.split_before(begin)
    loop.after.add_op(cf.ConditionalBranchOp(condition, behind, [], other, passed))
    return first


def _end_by(block: Block, end: Operation) -> None:
    """Put another op at the end of a block."""
    last = block.last_op
    assert last is not None
    last.detach()
    last.erase()
    block.add_op(end)


def _wait_before(block: Block) -> Operation:
    first = block.first_op
    assert first is not None
    wait = BarrierOp.create()
    wait.attributes[REGROUP] = builtin.UnitAttr()
    block.insert_op_before(wait, first)
    return wait


def _predecessors(function: func.FuncOp) -> dict[Block, list[Block]]:
    predecessors: dict[Block, list[Block]] = {block: [] for block in function.body.blocks}
    for block in function.body.blocks:
        for target in _targets(block):
            predecessors[target].append(block)
    return predecessors


def _targets(block: Block) -> list[Block]:
    last = block.last_op
    assert last is not None
    return list(last.successors)


def _loops(function: func.FuncOp) -> Iterator[tuple[_Loop, set[Block]]]:
    """Yield the loops by constant bounds, with the blocks of a step."""
    before = _predecessors(function)
    for header in function.body.blocks:
        end = header.last_op
        if not isinstance(end, cf.ConditionalBranchOp) or len(before[header]) != 2 or not _is_bounded(header, end.cond):
            continue
        if before[end.then_block] != [header] or before[end.else_block] != [header] or end.then_arguments:
            continue
        steps = _reached(end.then_block, header)
        latches = [block for block in before[header] if block in steps]
        entries = [block for block in before[header] if block not in steps]
        if len(latches) != 1 or len(entries) != 1 or end.else_block in steps:
            continue
        loop = _Loop(entries[0], header, end.then_block, latches[0], end.else_block)
        if _counts(loop):
            yield loop, steps


def counted_loops(function: func.FuncOp) -> Iterator[CountedLoop]:
    """Yield the loops whose number begins at a constant, grows by a constant and stays below a constant."""
    for loop, steps in _loops(function):
        end = loop.header.last_op
        assert isinstance(end, cf.ConditionalBranchOp)
        assert isinstance(end.cond.owner, arith.CmpiOp)
        start, step = _bounds(loop)
        bound = constant_value(end.cond.owner.rhs)
        within = frozenset(steps - _reached(loop.after, loop.header))
        if bound is not None and step > 0 and start < bound:
            yield CountedLoop(loop.header.args[0], range(start, bound, step), within)


def _reached(start: Block, without: Block | None = None) -> set[Block]:
    """Return the blocks reachable from a block, itself included, without passing through another one."""
    reached, pending = {start}, [start]
    while pending:
        for target in _targets(pending.pop()):
            if target is not without and target not in reached:
                reached.add(target)
                pending.append(target)
    return reached


def _is_bounded(header: Block, condition: SSAValue) -> bool:
    comparison = condition.owner
    return (
        isinstance(comparison, arith.CmpiOp)
        and comparison.predicate.value.data == _LESS_SIGNED
        and bool(header.args)
        and comparison.lhs is header.args[0]
        and constant_value(comparison.rhs) is not None
    )


def _counts(loop: _Loop) -> bool:
    """Return whether the induction variable starts at a constant and grows by a constant."""
    (start, *_), (grown, *_) = (_passed(block, loop.header) for block in (loop.before, loop.latch))
    addition = grown.owner
    return (
        constant_value(start) is not None
        and isinstance(addition, arith.AddiOp)
        and addition.lhs is loop.header.args[0]
        and constant_value(addition.rhs) is not None
    )


def _bounds(loop: _Loop) -> tuple[int, int]:
    """Return the start and the step of the induction variable."""
    (start, *_), (grown, *_) = (_passed(block, loop.header) for block in (loop.before, loop.latch))
    assert isinstance(grown.owner, arith.AddiOp)
    numbers = [constant_value(start), constant_value(grown.owner.rhs)]
    first, step = (value for value in numbers if value is not None)
    return first, step


def _passed(block: Block, target: Block) -> list[SSAValue]:
    last = block.last_op
    assert last is not None
    return next(list(values) for successor, values in successors(last) if successor is target)


def _is_innermost(steps: set[Block]) -> bool:
    """Return whether blocks have no loop among them, and threads do not wait in them."""
    waits = any(isinstance(op, BarrierOp | ShuffleOp | ShuffleReduceOp) for block in steps for op in block.ops)
    return not waits and not any(block in _reached_again(block, steps) for block in steps)


def _reached_again(block: Block, within: set[Block]) -> set[Block]:
    reached: set[Block] = set()
    pending = [block]
    while pending:
        for target in _targets(pending.pop()):
            if target in within and target not in reached:
                reached.add(target)
                pending.append(target)
    return reached


def _is_always_reached(function: func.FuncOp, block: Block) -> bool:
    """Return whether every path through a function goes through a block."""
    start = function.body.blocks[0]
    ends = set() if block is start else _reached(start, block)
    return not any(isinstance(item.last_op, func.ReturnOp) for item in ends)


def is_regrouping(op: Operation) -> bool:
    """Return whether threads wait only for the order in which the host runs them."""
    return REGROUP in op.attributes


def is_pure(op: Operation) -> bool:
    """Return whether an op may be computed once more, or where its result is not used."""
    if isinstance(op, arith.DivUIOp | arith.RemUIOp):
        return bool(constant_value(op.rhs))
    return isinstance(op, llvm.GEPOp) or (bool(op.results) and not op.regions and has_no_effects(op))
