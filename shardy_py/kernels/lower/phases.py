"""Phases of a kernel on the host: what a thread does from one barrier, or exchange between lanes, to the next.

All threads of a block run a phase, one after the other, before the first of them begins the next one. What a thread
computes in one phase and uses in a later one is kept in a slot of its own, or computed again where that is cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field
from xdsl.dialects import arith, builtin, func, llvm
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from shardy_py.kernels.dialect.gpu import BarrierOp, BlockIdOp, ShuffleOp, ThreadIdOp
from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.lower.control import successors
from shardy_py.kernels.lower.regroup import Counter, is_pure, is_regrouping, regroup_loops
from shardy_py.values import frozen

DONE = -1
EXCHANGES = (ShuffleOp, ShuffleReduceOp)
WAITS = (BarrierOp, *EXCHANGES)


@frozen(eq=False)
class Phase:
    """Blocks that a thread runs without waiting for others.

    Args:
        number: The number of the phase.
        blocks: The blocks, each behind those that dominate it; the first one begins the phase.
        dominators: For every block those that each path to it goes through, itself among them.
        exits: The phases that may follow; `DONE` where threads are done.
        after: The exchange between lanes that the phase begins with, if one does.
        is_regrouped: Whether the phase begins where all threads do, whatever they computed.
    """

    number: int
    blocks: tuple[Block, ...]
    dominators: dict[Block, frozenset[Block]]
    exits: tuple[int, ...]
    after: ShuffleOp | ShuffleReduceOp | None = None
    is_regrouped: bool = False


@frozen(eq=False)
class Phases:
    """The phases of a function, the first one first.

    Args:
        phases: The phases.
        slots: Values that are kept from phase to phase, in a fixed order.
        following: For every block that ends by waiting, the number of the phase behind it.
        again: Values that are computed again in each phase that uses them.
        counters: The numbers that loops go by whose steps all threads run together, each with the phase of a step.
    """

    phases: tuple[Phase, ...]
    slots: tuple[SSAValue, ...]
    following: dict[Block, int]
    again: frozenset[SSAValue] = field(repr=False)
    counters: dict[SSAValue, tuple[int, Counter]] = field(repr=False)


def split_phases(function: func.FuncOp) -> Phases:
    """Return the phases of an entry function; its blocks are split where threads wait.

    Args:
        function: The function after the last pass; it is changed.
    """
    following: dict[Block, int] = {}
    counters = regroup_loops(function)
    starts: list[tuple[Block, Operation | None]] = [(function.body.blocks[0], None)]
    for wait in [op for op in function.walk() if isinstance(op, WAITS)]:
        block, rest = wait.parent, wait.next_op
        assert block is not None
        assert rest is not None
        following[block] = len(starts)
        starts.append((block.split_before(rest), wait))
    phases = tuple(_phase(number, start, wait, following) for number, (start, wait) in enumerate(starts))
    again = frozenset(_cheap_values(function))
    numbers = {wait: number for number, (_, wait) in enumerate(starts)}
    counted = {counter.value: (numbers[counter.wait], counter) for counter in counters}
    slots = tuple(value for value in _values_to_store(phases, again) if value not in counted)
    return Phases(phases, slots, following, again, counted)


def _phase(number: int, start: Block, wait: Operation | None, following: dict[Block, int]) -> Phase:
    blocks = _in_order(start)
    exits = {following.get(block, DONE) for block in blocks if not _target_blocks(block)}
    after = wait if isinstance(wait, EXCHANGES) else None
    is_regrouped = wait is not None and is_regrouping(wait)
    return Phase(number, tuple(blocks), _dominators(blocks), tuple(sorted(exits)), after, is_regrouped)


def targets(block: Block) -> Iterator[tuple[Block, Sequence[SSAValue]]]:
    """Yield the blocks that a block leads to without waiting, with what it passes."""
    last = block.last_op
    assert last is not None
    if not isinstance(last, WAITS):
        yield from successors(last)


def _target_blocks(block: Block) -> Sequence[Block]:
    """Return the blocks that a block leads to without waiting; without what it passes, which takes xDSL its time."""
    last = block.last_op
    assert last is not None
    return last.successors


def _in_order(start: Block) -> list[Block]:
    """Return the blocks that can be reached without waiting, each behind those that dominate it."""
    post_order: list[Block] = []
    seen: set[Block] = {start}
    pending = [(start, False)]
    while pending:
        block, is_done = pending.pop()
        if is_done:
            post_order.append(block)
            continue
        pending.append((block, True))
        for target in _target_blocks(block):
            if target not in seen:
                seen.add(target)
                pending.append((target, False))
    return post_order[::-1]


def _dominators(blocks: Sequence[Block]) -> dict[Block, frozenset[Block]]:
    before: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for target in _target_blocks(block):
            before[target].append(block)
    everything = frozenset(blocks)
    dominators = dict.fromkeys(blocks, everything) | {blocks[0]: frozenset([blocks[0]])}
    is_changed = True
    while is_changed:
        is_changed = False
        for block in blocks[1:]:
            new = frozenset.intersection(*(dominators[item] for item in before[block])) | {block}
            is_changed |= new != dominators[block]
            dominators[block] = new
    return dominators


def block_of(value: SSAValue) -> Block:
    """Return the block that a value is computed in."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    block = owner.parent
    assert block is not None
    return block


def _cheap_values(function: func.FuncOp) -> Iterator[SSAValue]:
    """Yield the values that follow from ids and arguments by cheap operations on integers and pointers."""
    entry = function.body.blocks[0]
    known: set[SSAValue] = set(entry.args)
    yield from entry.args
    blocks = _all_in_order(function)
    for op in (op for block in blocks for op in block.ops):
        is_id = isinstance(op, ThreadIdOp | BlockIdOp | arith.ConstantOp | llvm.AddressOfOp)
        is_cheap = is_id or (is_pure(op) and all(value in known for value in op.operands))
        if is_cheap and all(is_id or _is_integer(value.type) for value in op.results):
            known.update(op.results)
            yield from op.results


def _all_in_order(function: func.FuncOp) -> list[Block]:
    """Return all blocks of a function, definitions before uses: blocks after a wait follow it."""
    ordered: list[Block] = []
    seen: set[Block] = set()
    for start in function.body.blocks:
        for block in _in_order(start) if start not in seen else ():
            if block not in seen:
                seen.add(block)
                ordered.append(block)
    return ordered


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, builtin.IntegerType | builtin.IndexType | llvm.LLVMPointerType)


def is_at_hand(phase: Phase, value: SSAValue, user: Block) -> bool:
    """Return whether a phase computes a value before each use of it in a block."""
    if isinstance(value, OpResult) and isinstance(value.op, EXCHANGES):
        return phase.after is value.op
    if isinstance(phase.after, ShuffleOp) and value is phase.after.value:
        return True
    return block_of(value) in phase.dominators[user]


def _values_to_store(phases: Sequence[Phase], again: frozenset[SSAValue]) -> tuple[SSAValue, ...]:
    stored: dict[SSAValue, None] = {}
    for phase in phases:
        for block in phase.blocks:
            for op in block.ops:
                for value in op.operands:
                    if value not in again and not is_at_hand(phase, value, block):
                        stored[value] = None
    return tuple(stored)
