"""Constants go to the start of their function, equal ones become one, as MLIR's rewriter does besides its patterns."""

from __future__ import annotations

from collections.abc import Hashable

from shardy_py.ir.graph.attributes import freeze
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.plugins import AsSdyConstant, IsolatedFromAbove, OpSemantics


def hoist_constants(program: Program, semantics: OpSemantics) -> None:
    """Hoist all constants, but not those of the sdy dialect, which are there not to be merged.

    The last one comes to stand first; a constant that follows a hoisted one is left where it is.
    """
    kept: dict[Hashable, Op] = {}
    hoisted: set[Op] = set()
    for op in [op for op in program.walk() if AsSdyConstant in semantics.get_traits(op)]:
        block = _hoisting_block(op, semantics)
        if block is None or op.parent is None:
            continue
        first = kept.setdefault((id(block), freeze(op.attributes["value"]), op.result.type), op)
        if first is not op:
            op.result.replace_all_uses_with(first.result)
            op.erase()
            continue
        hoisted.add(op)
        if op.parent is not block or (op.prev is not None and op.prev not in hoisted):
            op.parent.remove(op)
            block.insert_after(None, op)


def _hoisting_block(op: Op, semantics: OpSemantics) -> Block | None:
    """Return the first block of the outermost region from which values can be used where the op stands."""
    block = op.parent
    while block is not None and block.parent is not None:
        around = block.parent_op
        if around is None or around.name == "func.func" or IsolatedFromAbove in semantics.get_traits(around):
            return block.parent.blocks[0]
        block = around.parent
    return None
