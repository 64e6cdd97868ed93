"""Take every sharding out of a program for one device: there is nothing to distribute."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, PROPAGATION_BARRIER, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.walk import all_ops, inner_first, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen

_THROUGH = (*RESHARDS, PROPAGATION_BARRIER, SHARDING_GROUP)


@frozen
class DropShardingsPass:
    """Remove what shards values, and put the bodies of manual computations in their places.

    The local shapes in manual computations must be the global ones, as they are where all axes have the size 1.
    """

    name: ClassVar[str] = "xla-drop-shardings"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop the shardings of all values, and the ops that hold some."""
        for op in inner_first(ops_named(program, MANUAL_COMPUTATION)):
            _inline(op)
        for op in ops_named(program, *_THROUGH):
            for result in op.results:
                result.replace_all_uses_with(op.operands[0])
            op.erase()
        for op in all_ops(program):
            if SHARDING in op.attributes:
                del op.attributes[SHARDING]
        program.shardings.clear()


def _inline(computation: Op) -> None:
    block, parent = computation.regions[0].block, computation.parent
    if parent is None or block.terminator is None:
        return
    for argument, operand in zip(block.arguments, computation.operands, strict=True):
        argument.replace_all_uses_with(operand)
    terminator = block.terminator
    for op in list(block.ops):
        if op is not terminator:
            block.remove(op)
            parent.insert_before(computation, op)
    for result, value in zip(computation.results, terminator.operands, strict=True):
        result.replace_all_uses_with(value)
    computation.erase()
