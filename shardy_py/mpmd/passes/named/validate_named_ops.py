"""Names in the places where they have a meaning."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION, NAMED_TENSOR, TOPOLOGY
from shardy_py.values import NoFields

_WORDS = {NAMED_COMPUTATION: "Named computations", NAMED_TENSOR: "Named tensors"}


class ValidateNamedOpsInMpmdFuncPass(NoFields):
    """Warn of named computations and tensors outside of functions with a topology: their names have no effect."""

    name: ClassVar[str] = "mpmd-validate-named-ops-in-mpmd-func"

    def run(self, program: Program, context: PassContext) -> None:
        """Add a warning for each."""
        for op in ops_named(program, NAMED_COMPUTATION, NAMED_TENSOR):
            if not _has_meaning(op):
                message = f"{_WORDS[op.name]} can only be nested in mpmd functions or mpmd ops."
                context.warnings.append(Diagnostic("misplaced-name", message, op.location, op.name))


def _has_meaning(op: Op) -> bool:
    parent = op.parent_op
    if parent is None:
        return False
    return parent.name.startswith("mpmd.") or (parent.name == FUNCTION and TOPOLOGY in parent.attributes)
