"""Transfers next to what they transfer, and without round trips.

Mirrors mpmd/transforms/common/remove_transfer_cycles.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_inter_mesh, mpmd_functions
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.types import require_mesh_tensor
from shardy_py.values import NoFields


class MoveTransfersToProducerPass(NoFields):
    """Move each transfer just behind the op that makes its operand, or to the start of its function."""

    name: ClassVar[str] = "mpmd-move-transfers-to-producer"

    def run(self, program: Program, context: PassContext) -> None:
        """Move the transfers of each function, which keep their order."""
        for function in mpmd_functions(program):
            block = block_of(function)
            last: dict[int, Op] = {}
            for op in [op for op in block.ops if op.name == TRANSFER]:
                source = op.operands[0]
                producer = source.defining_op
                key = -1 if producer is None else producer.id
                anchor = last.get(key, producer)
                block.remove(op)
                block.insert_after(anchor, op)
                last[key] = op


class SimplifyTransfersPass(NoFields):
    """Drop transfers to where a tensor is, and let the second of two within one mesh start from the first operand."""

    name: ClassVar[str] = "mpmd-simplify-transfers"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the transfers of each function in order."""
        for function in mpmd_functions(program):
            for op in [op for op in block_of(function).ops if op.name == TRANSFER]:
                before = op.operands[0].defining_op
                if before is not None and before.name == TRANSFER and not (is_inter_mesh(op) or is_inter_mesh(before)):
                    op.set_operand(0, before.operands[0])
                if op.operands[0].type == op.results[0].type:
                    op.results[0].replace_all_uses_with(op.operands[0])
            erase_unused_transfers(block_of(function))


class RemoveTransferCyclesPass(NoFields):
    """Replace the result of a round trip of transfers between devices by the value before it."""

    name: ClassVar[str] = "mpmd-remove-transfer-cycles"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the transfers of each function in order."""
        for function in mpmd_functions(program):
            for op in [op for op in block_of(function).ops if op.name == TRANSFER]:
                earlier = _same_before(op)
                if earlier is not None:
                    op.results[0].replace_all_uses_with(earlier)
            erase_unused_transfers(block_of(function))


def erase_unused_transfers(block: Block) -> None:
    """Erase the transfers of a block that nothing uses, and those that only they use."""
    for op in reversed([op for op in block.ops if op.name == TRANSFER]):
        if not op.results[0].uses:
            op.erase()


def _same_before(transfer: Op) -> Value | None:
    """Return an earlier value of the chain of a transfer that has its type already."""
    type_ = transfer.results[0].type
    value = transfer.operands[0]
    if require_mesh_tensor(transfer.results[0]).is_on_host:
        return None
    while not require_mesh_tensor(value).is_on_host:
        if value.type == type_:
            return value
        producer = value.defining_op
        if producer is None or producer.name != TRANSFER:
            return None
        value = producer.operands[0]
    return None
