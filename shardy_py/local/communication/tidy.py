"""Local programs without what is computed twice, or for nothing: offsets, masks, and collectives of equal pieces."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator, OpSemantics, Pure
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.merge_equal_ops import merge_equal_ops
from shardy_py.local.local_ops import find_local_ops
from shardy_py.values import NoFields


class TidyLocalProgramPass(NoFields):
    """Merge equal ops of a local program, and erase those that nothing uses; collectives, too."""

    name: ClassVar[str] = "tidy-local-program"

    def run(self, program: Program, context: PassContext) -> None:
        """Tidy all functions."""
        ops = find_local_ops(program, context.semantics)
        blocks = [
            block for function in program.functions.values() for region in function.regions for block in region.blocks
        ]
        for block in blocks:
            merge_equal_ops(block, context.semantics, lambda op: _is_repeatable(op, ops))
            _erase_unused(block, context.semantics, ops)


def _is_repeatable(op: Op, ops: LocalOps) -> bool:
    """Return whether an op gives the same each time, though it is not pure: a collective, or the number of a device."""
    return ops.read_collective(op) is not None or ops.is_device_number(op)


def _erase_unused(block: Block, semantics: OpSemantics, ops: LocalOps) -> None:
    """Erase the ops of a block that nothing uses, the last ones first."""
    op = block.last
    while op is not None:
        before = op.prev
        for region in op.regions:
            for inner in region.blocks:
                _erase_unused(inner, semantics, ops)
        is_used = not op.results or any(value.uses for value in op.results)
        if not is_used and _may_go(op, semantics, ops):
            op.erase()
        op = before


def _may_go(op: Op, semantics: OpSemantics, ops: LocalOps) -> bool:
    if op.name == FUNCTION or semantics.has_trait(op, IsTerminator):
        return False
    is_pure = semantics.has_trait(op, Pure) or semantics.has_trait(op, ConstantLike)
    return is_pure or _is_repeatable(op, ops)
