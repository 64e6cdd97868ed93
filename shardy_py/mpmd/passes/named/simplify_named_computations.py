"""Named computations without unused results and operands."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION
from shardy_py.mpmd.passes.region_ops import simplify
from shardy_py.values import NoFields


class SimplifyNamedComputationsPass(NoFields):
    """Remove duplicate, unused and forwarded results, and duplicate and unused operands.

    A result that is an argument is replaced by the operand: what passes through a computation is not part of it.
    """

    name: ClassVar[str] = "mpmd-simplify-named-computations"

    def run(self, program: Program, context: PassContext) -> None:
        """Simplify users before producers, so that producers left without users are simplified, too."""
        for op in reversed(list(ops_named(program, NAMED_COMPUTATION))):
            simplify(op, context.semantics, may_forward=lambda operand, result: operand.type == result.type)
