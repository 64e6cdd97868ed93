"""Ops of a program by name, in program order, without a walk where none can be; see `OpIndex`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from shardy_py.ir.graph.program import Op, Program, Region
from shardy_py.ir.interfaces.ops import OpSemantics, Trait


def all_ops(program: Program) -> Sequence[Op]:
    """Return all ops, each before those in its regions; the list stays as it is while ops change."""
    return program.index.all_ops()


def all_in_region(region: Region) -> list[Op]:
    """Return all ops of a region, each before those in its own regions, as a new list."""
    return list(chain.from_iterable([block.list_ops() for block in region.blocks]))


def ops_named(program: Program, *names: str) -> Sequence[Op]:
    """Return the ops with one of some names, each before those in its regions."""
    return ops_among(program, names)


def ops_among(program: Program, names: Iterable[str]) -> Sequence[Op]:
    """Return the ops whose name is among the given ones, each before those in its regions."""
    wanted = program.op_names.intersection(names)
    return program.index.ops_among(wanted) if wanted else ()


def names_with_trait(program: Program, semantics: OpSemantics, *traits: Trait) -> frozenset[str]:
    """Return the names of the ops of a program that have one of some traits, or some of which may have it."""
    return semantics.names_with_traits(program.op_names, frozenset(traits))


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

    The index of the other ops holds, as none of them moves.
    """
    roots = list(outer)
    gone = [op for root in roots for op in (root, *chain.from_iterable(map(all_in_region, root.regions)))]

    def unlink() -> None:
        for root in roots:
            if root.parent is not None:
                root.parent.remove(root)

    program.index.drop(gone, unlink)
    return gone
