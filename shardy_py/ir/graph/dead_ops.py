"""Dead ops: without effects and without users."""

from __future__ import annotations

from collections.abc import Container, Sequence

from shardy_py.ir.graph.op_graph import drop_uses_together
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics, Pure, RecursiveMemoryEffects


def find_dead_ops(program: Program, semantics: OpSemantics, *, pure: Container[str] = ()) -> list[Op]:
    """Return the ops that nothing with an effect depends on, outermost only, in program order.

    Args:
        program: The program.
        semantics: What is known about ops.
        pure: The names of more ops that have no effects.
    """
    dead_ops: list[Op] = []
    if not _has_any(program, semantics, pure):
        return dead_ops
    unused: set[int] = set()
    for function in reversed(list(program.functions.values())):
        for region in function.regions:
            for block in reversed(region.blocks):
                _find_in_block(block, semantics, pure, unused, dead_ops)
    dead_ops.reverse()
    return dead_ops


def _has_any(program: Program, semantics: OpSemantics, pure: Container[str]) -> bool:
    """Return whether the program has a dead op: an op whose results have no uses."""
    for op in all_ops(program):
        results = op.results
        # The first result of nearly every op is used.
        if (results and results[0].uses) or op.parent is program.body:
            continue
        if not any(value.uses for value in results) and is_removable(op, semantics, pure):
            return True
    return False


def _find_in_block(
    block: Block, semantics: OpSemantics, pure: Container[str], unused: set[int], dead_ops: list[Op]
) -> None:
    op = block.last
    while op is not None:
        if not _is_used(op, unused) and is_removable(op, semantics, pure):
            unused.update(inner.id for inner in op.walk())
            dead_ops.append(op)
        else:
            for region in op.regions:
                for inner_block in reversed(region.blocks):
                    _find_in_block(inner_block, semantics, pure, unused, dead_ops)
        op = op.prev


def _is_used(op: Op, unused: Container[int]) -> bool:
    """Return whether an op has a user besides dead ones."""
    for value in op.results:
        for user, _ in value.uses:
            if user.id not in unused:
                return True
    return False


def is_removable(op: Op, semantics: OpSemantics, pure: Container[str] = ()) -> bool:
    """Return whether an op is dead once its results have no users.

    Args:
        op: The op.
        semantics: What is known about ops.
        pure: The names of more ops that have no effects.
    """
    traits = semantics.get_traits(op)
    return IsTerminator not in traits and _has_no_effects(op, semantics, pure)


def _has_no_effects(op: Op, semantics: OpSemantics, pure: Container[str]) -> bool:
    traits = semantics.get_traits(op)
    is_pure = Pure in traits or op.name in pure
    if is_pure and not op.regions:
        return True
    if RecursiveMemoryEffects in traits:
        return all(
            _has_no_effects(inner, semantics, pure)
            for region in op.regions
            for block in region.blocks
            for inner in block.ops
        )
    return is_pure


def erase_dead_ops(program: Program, semantics: OpSemantics, *, pure: Container[str] = ()) -> None:
    """Erase all dead ops of a program.

    Args:
        program: The program.
        semantics: What is known about ops.
        pure: The names of more ops that have no effects.
    """
    unused = find_dead_ops(program, semantics, pure=pure)
    for op in reversed(unused):
        for inner in op.walk():
            for value in inner.results:
                program.shardings.pop(value.id, None)
    erase_together(unused)


def erase_together(ops: Sequence[Op]) -> None:
    """Erase ops whose results only these ops use.

    The list of uses of each value is visited once, however many of them are erased.

    Args:
        ops: The ops, in program order.
    """
    drop_uses_together([inner for op in ops for inner in op.walk()])
    for op in reversed(ops):
        op.erase()
