"""Cheap results of named computations, made again where they are used."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.ops import OpSemantics, Pure
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import terminator_of
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION
from shardy_py.values import NoFields


class InsertNamelessCloneOfNegligibleOpsPass(NoFields):
    """Replace a result that an op without operands makes by a clone of that op outside, unless the function returns it.

    A constant that a computation returns would tie what uses it to the mesh of the computation.
    """

    name: ClassVar[str] = "mpmd-insert-nameless-clone-of-negligible-ops"

    def run(self, program: Program, context: PassContext) -> None:
        """Clone behind each named computation, in the order of its results."""
        for op in list(ops_named(program, NAMED_COMPUTATION)):
            anchor = op
            for value, returned in zip(op.results, terminator_of(op).operands, strict=True):
                producer = returned.defining_op
                if producer is None or not is_negligible(producer, context.semantics):
                    continue
                uses = [(user, number) for user, number in value.uses if user.name != RETURN]
                clone = clone_op(producer, {})
                assert op.parent is not None
                op.parent.insert_after(anchor, clone)
                anchor = clone
                for user, number in uses:
                    user.set_operand(number, clone.results[0])


def is_negligible(op: Op, semantics: OpSemantics) -> bool:
    """Return whether an op is cheap to make again: pure, no operands, one result."""
    return not op.operands and len(op.results) == 1 and not op.regions and semantics.has_trait(op, Pure)
