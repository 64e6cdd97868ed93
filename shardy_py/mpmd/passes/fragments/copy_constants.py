"""Constants that fragments hand to others, made again where they are used.

Mirrors mpmd/transforms/common/copy_constants.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.ops import ConstantLike
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import body_of, is_fragment, mpmd_functions, terminator_of
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.values import NoFields


class CopyConstantsPass(NoFields):
    """Copy a constant that another fragment makes into the fragments that use it, also behind transfers."""

    name: ClassVar[str] = "mpmd-copy-constants"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments of all functions in order."""
        for function in mpmd_functions(program):
            for op in block_of(function).ops:
                if is_fragment(op):
                    self._copy_into(op, context)

    def _copy_into(self, op: Op, context: PassContext) -> None:
        anchor: Op | None = None
        for value, argument in zip(op.operands, body_of(op).arguments, strict=True):
            constant = _producer_in_fragment(value)
            if argument.uses and constant is not None and context.semantics.has_trait(constant, ConstantLike):
                anchor = body_of(op).insert_after(anchor, clone_op(constant, {}))
                argument.replace_all_uses_with(anchor.results[0])


def _producer_in_fragment(value: Value) -> Op | None:
    """Return the op in another fragment that makes a value, or None."""
    op = value.defining_op
    while op is not None and op.name == TRANSFER:
        value = op.operands[0]
        op = value.defining_op
    return terminator_of(op).operands[value.index].defining_op if op is not None and is_fragment(op) else None
