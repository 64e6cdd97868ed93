"""Dead ops: without effects and without users."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from shardy_py.ir.graph.op_graph import drop_uses_together
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics, Pure, RecursiveMemoryEffects


def find_dead_ops(
    program: Program, semantics: OpSemantics, *, pure: Container[str] = (), unused: Iterable[Op] | None = None
) -> list[Op]:
    """Return the ops that nothing with an effect depends on, outermost only, in program order.

    Args:
        program: The program.
        semantics: What is known about ops.
        pure: The names of more ops that have no effects.
        unused: The ops no result of which has a use, where they are known.
    """
    dead_ops: list[Op] = []
    if unused is None:
        # The first result of nearly every op is used.
        first_unused = [op for op in all_ops(program) if not op.results or not op.results[0].uses]
        unused = [op for op in first_unused if not any(value.uses for value in op.results)]
    if not any(op.parent is not program.body and is_removable(op, semantics, pure) for op in unused):
        return dead_ops
    dead: set[int] = set()
    for function in reversed(list(program.functions.values())):
        for region in function.regions:
            for block in reversed(region.blocks):
                _find_in_block(block, semantics, pure, dead, dead_ops)
    dead_ops.reverse()
    return dead_ops


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
