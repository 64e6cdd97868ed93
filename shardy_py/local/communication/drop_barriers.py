"""Propagation barriers dropped once propagation is over: nothing flows any more that they could stop."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import PROPAGATION_BARRIER
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class DropBarriersPass(NoFields):
    """Replace propagation barriers by their operands.

    What uses one is brought the operand as it is sharded, whatever sharding the barrier itself has, or none.
    """

    name: ClassVar[str] = "drop-barriers"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop the barriers of all functions."""
        for op in list(all_ops(program)):
            if op.name == PROPAGATION_BARRIER:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
