"""Ops of a program by name, in program order, without walking where none can be.

Most passes are about a few ops that most programs do not have. What is found is kept until such ops enter or leave
blocks, so that one walk serves all passes up to the next that changes something about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from shardy_py.ir.graph import ANY_NAME, Block, Op, Program, Region
from shardy_py.ir.interfaces import OpSemantics, Trait

_ALL = frozenset((ANY_NAME,))


def all_ops(program: Program) -> Sequence[Op]:
    """Return all ops, each before those in its regions; a list of its own for whoever goes on while ops change."""
    found = _what_holds(program)
    ops = found.get(_ALL)
    if ops is None:
        ops = found[_ALL] = _walk(program.body)
    return ops


def all_in_region(region: Region) -> list[Op]:
    """Return all ops of a region, each before those in its own regions; a list of its own."""
    return list(chain.from_iterable([_walk(block) for block in region.blocks]))


def _walk(block: Block) -> list[Op]:
    """Return what `Block.walk` yields, in half the time: no op changes meanwhile."""
    ops: list[Op] = []
    append = ops.append
    op = block.first
    # Where to go on after a block, and the blocks to do before that, the next one last.
    later: list[Op | Block | None] = []
    while True:
        while op is not None:
            append(op)
            if op.regions:
                later.append(op.next)
                later.extend([inner for region in reversed(op.regions) for inner in reversed(region.blocks)])
                break
            op = op.next
        if not later:
            return ops
        top = later.pop()
        op = top.first if isinstance(top, Block) else top


def ops_named(program: Program, *names: str) -> Sequence[Op]:
    """Return the ops with one of some names, each before those in its regions."""
    return ops_among(program, names)


def ops_among(program: Program, names: Iterable[str]) -> Sequence[Op]:
    """Return the ops whose name is among the given ones, each before those in its regions."""
    wanted = program.op_names.intersection(names)
    if not wanted:
        return ()
    found = _what_holds(program)
    key = frozenset(wanted)
    ops = found.get(key)
    if ops is None:
        ops = found[key] = [op for op in all_ops(program) if op.name in wanted]
    return ops


def names_with_trait(program: Program, semantics: OpSemantics, *traits: Trait) -> set[str]:
    """Return the names of the ops of a program that have one of some traits, or some of which may have it."""
    found: set[str] = set()
    for name in program.op_names:
        known = semantics.traits_of_name(name)
        if known is None or not known.isdisjoint(traits):
            found.add(name)
    return found


def data_flow_ops(program: Program, semantics: OpSemantics) -> Sequence[Op]:
    """Return the ops with data-flow edges, each before those in its regions."""
    return ops_among(program, semantics.names_with_data_flow(program.op_names))


def inner_first(ops: Iterable[Op]) -> list[Op]:
    """Return ops that come each before those inside it, so that each comes after those inside it."""
    result: list[Op] = []
    around: list[Op] = []
    for op in ops:
        while around and not _is_inside(op, around[-1]):
            result.append(around.pop())
        if op.regions:
            around.append(op)
        else:
            result.append(op)
    return result + around[::-1]


def _is_inside(op: Op, outer: Op) -> bool:
    block = op.parent
    while block is not None and block.parent is not None:
        parent = block.parent.parent
        if parent is outer:
            return True
        block = parent.parent if parent is not None else None
    return False


def outermost(op: Op) -> Op:
    """Return the op around an op, and around that, and so on, that no other is around."""
    block = op.parent
    while block is not None and block.parent is not None and block.parent.parent is not None:
        op = block.parent.parent
        block = op.parent
    return op


def place_of(op: Op) -> str:
    """Return the location of an op; of one that a pass made, that of the nearest op before or around it, or ""."""
    near: Op | None = op
    while near is not None and not near.location:
        near = near.prev or near.parent_op
    return "" if near is None else near.location


def remove_with_content(program: Program, outer: Iterable[Op]) -> Sequence[Op]:
    """Unlink ops with all that is inside them, and return it all; their uses stay.

    What was found of the other ops holds, as none of them moves.
    """
    found = _what_holds(program)
    gone: list[Op] = []
    for op in outer:
        gone.append(op)
        gone += [inner for region in op.regions for inner in all_in_region(region)]
        if op.parent is not None:
            op.parent.remove(op)
    program.edited.clear()
    program.removed.clear()
    ids = set(map(id, gone))
    for names, ops in found.items():
        found[names] = [op for op in ops if id(op) not in ids]
    return gone


def _what_holds(program: Program) -> dict[frozenset[str], list[Op]]:
    """Return what is known of the program as it is now; filled by the caller."""
    found, edited, removed = program.found, program.edited, program.removed
    if ANY_NAME in edited:
        found.clear()
    elif edited:
        # Ops without regions came: that changes nothing about those of other names, nor their order.
        edited.add(ANY_NAME)
        for names in [names for names in found if not names.isdisjoint(edited)]:
            del found[names]
    if removed:
        removed.add(ANY_NAME)
        for names in [names for names in found if not names.isdisjoint(removed)]:
            found[names] = [op for op in found[names] if op.parent is not None]
        removed.clear()
    if edited:
        edited.clear()
    return found
