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

    The result of one often has no sharding of its own, and would count as whole on every device.
    """

    name: ClassVar[str] = "drop-barriers"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop those whose result is sharded as the operand, or has no sharding."""
        for op in list(all_ops(program)):
            if op.name != PROPAGATION_BARRIER:
                continue
            after = program.sharding(op.results[0])
            if after is None or after == program.sharding(op.operands[0]):
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
