"""Allocations of memory that the threads of a block share."""

from __future__ import annotations

from xdsl.dialects import builtin

from shardy_py.emitters.dialect.memory_ops import AllocateSharedOp
from shardy_py.emitters.passes.base import KernelContext, functions
from shardy_py.values import frozen


@frozen
class LowerShared:
    """Move allocations to the begin of their function: a block has each tile once, whatever loop asks for it."""

    name: str = "lower-shared"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            entry = function.body.blocks[0]
            allocations = [op for op in function.walk() if isinstance(op, AllocateSharedOp)]
            for op in reversed(allocations):
                first = entry.first_op
                if first is op or first is None:
                    continue
                op.detach()
                entry.insert_op_before(op, first)
