"""Transfers from the host, and fragments that nobody named, as late as they can be: they hold memory from then on.

Mirrors mpmd/transforms/export/delay_transfers_from_cpu.cc and delay_inferred_fragments.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import is_inferred_fragment, mpmd_functions
from shardy_py.mpmd.dialect.op_names import TRANSFER
from shardy_py.mpmd.dialect.types import mesh_tensor_of
from shardy_py.mpmd.passes.named.transfers import earliest
from shardy_py.values import NoFields


class DelayInferredFragmentsPass(NoFields):
    """Move each inferred fragment just before its first user."""

    name: ClassVar[str] = "mpmd-delay-inferred-fragments"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all functions."""
        _delay(program, is_inferred_fragment)


class DelayTransfersFromCpuPass(NoFields):
    """Move each transfer from a host mesh, or from the memory of the host, just before its first user."""

    name: ClassVar[str] = "mpmd-delay-transfers-from-cpu"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all functions."""
        _delay(program, _is_from_host)


def _is_from_host(op: Op) -> bool:
    type_ = mesh_tensor_of(op.operands[0]) if op.name == TRANSFER else None
    return type_ is not None and type_.is_off_device


def _delay(program: Program, is_delayed: Callable[[Op], bool]) -> None:
    """Move ops before their first users, the last op first: one that uses another takes it along."""
    for function in mpmd_functions(program):
        block = block_of(function)
        for op in reversed(list(block.ops)):
            users = [user for value in op.results for user, _ in value.uses if user.parent is block]
            if not users or not is_delayed(op):
                continue
            first = earliest(users)
            if op.next is not first:
                block.remove(op)
                block.insert_before(first, op)
