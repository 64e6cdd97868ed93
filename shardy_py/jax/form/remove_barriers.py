"""Remove what only steers propagation."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import PROPAGATION_BARRIER, SHARDING_GROUP
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen


@frozen
class RemoveBarriersPass:
    """Remove ``sdy.propagation_barrier`` and ``sdy.sharding_group``: with closed constraints nothing propagates."""

    name: ClassVar[str] = "xla-remove-barriers"

    def run(self, program: Program, context: PassContext) -> None:
        """Remove the ops; users of a barrier use its operand."""
        for op in ops_named(program, PROPAGATION_BARRIER, SHARDING_GROUP):
            for result in op.results:
                result.replace_all_uses_with(op.operands[0])
            op.erase()
