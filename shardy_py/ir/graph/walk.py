"""Walk over a program: ops by name in program order, values of ops, and uses in the order in which they are visited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
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


def nearest_location(op: Op) -> str:
    """Return the location of an op, or of the nearest op before or around it that has one, or ""."""
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


def region_arguments(op: Op) -> Iterator[Value]:
    """Yield the arguments of all blocks of an op."""
    return (argument for region in op.regions for block in region.blocks for argument in block.arguments)


def own_values(op: Op) -> Iterator[Value]:
    """Yield the results of an op, those of a function, and the arguments of its blocks."""
    yield from op.results
    yield from op.function_results
    yield from region_arguments(op)


def all_values(root: Op | Program) -> Iterator[Value]:
    """Yield the results and the arguments of blocks of all ops, in program order, without the results of functions."""
    for op in root.walk():
        yield from op.results
        yield from region_arguments(op)


def entry_block(function: Op) -> Block | None:
    """Return the first block of a function, or None for a declaration."""
    for region in function.regions:
        for block in region.blocks:
            return block
    return None


def entry_arguments(function: Op) -> Sequence[Value]:
    """Return the arguments of a function; () for a declaration."""
    block = entry_block(function)
    return () if block is None else block.arguments


def order_uses(program: Program) -> None:
    """Bring the uses of every value into program order, an op before those in its regions.

    Parsing enters the uses of an op after those in its regions; MLIR's dialect conversion, which the reference runs
    when it splits constants, enters all uses again in program order. Propagation follows uses in their order.
    """
    ops = all_ops(program)
    multiple = [op for op in ops if op.regions and any(len(value.uses) > 1 for value in op.operands)]
    if not multiple:
        return
    position = dict(zip(ops, range(len(ops)), strict=True))

    def use_key(use: tuple[Op, int]) -> tuple[int, int]:
        return position[use[0]], use[1]

    # Each value once: an op may use one as often as it has operands.
    for value in {value.id: value for op in multiple for value in op.operands}.values():
        if len(value.uses) > 1:
            value.sort_uses(use_key)


def enter_uses_anew(op: Op) -> None:
    """Bring the uses of all values inside an op into the order in which parsing its text would enter them.

    Args:
        op: An op that uses nothing from outside, such as a function.
    """
    for inner in op.walk():
        for value in (*inner.results, *region_arguments(inner)):
            value.clear_uses()
    for region in op.regions:
        for block in region.blocks:
            _enter_uses(block)


def _enter_uses(block: Block) -> None:
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                _enter_uses(inner)
        op.register_uses()
