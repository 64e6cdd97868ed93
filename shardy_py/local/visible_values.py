"""Check of the values that the ops of a local program use: each is visible where its user stands.

A local form may reach values of the program on whole tensors, of another block or of another program. An op that uses
one of them would be invalid, and MLIR would not survive the printing of some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.support.identity import identity


def check_visible_values(op: Op, first: Op | None, results: Iterable[Value], blocks: Iterable[Block]) -> None:
    """Check that what an op became uses and returns only values of the blocks around it.

    Args:
        op: The op of the global program.
        first: The first op that it became, followed by the others; None if it became none.
        results: The values that stand for its results.
        blocks: The block of these ops and those around it, on each device.

    Raises:
        PluginError: a value belongs to another block, or to an op that was erased.
    """
    visible = frozenset(map(identity, blocks))
    for user, value in _invisible_operands(first, visible):
        raise _invisible(op, value, f"the op '{user.name}' of its local form")
    for value in results:
        if identity(_block_of(value)) not in visible:
            raise _invisible(op, value, "its local form")


def _invisible_operands(op: Op | None, visible: frozenset[int]) -> Iterator[tuple[Op, Value]]:
    """Yield the ops from one on to the end of its block that use invisible values, with these."""
    while op is not None:
        for value in op.operands:
            if identity(_block_of(value)) not in visible:
                yield op, value
        for region in op.regions:
            inside = visible.union(map(identity, region.blocks))
            for block in region.blocks:
                yield from _invisible_operands(block.first, inside)
        op = op.next


def _block_of(value: Value) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _invisible(op: Op, value: Value, user: str) -> PluginError:
    source = f"a result of '{value.owner.name}'" if isinstance(value.owner, Op) else "an argument"
    message = f"{user} uses {source} of type {value.type}, which is not visible where the op runs on each device"
    hint = "use the values in shard.operands and the results of ops that shard.emit made for this op"
    return PluginError(Diagnostic("local-failed", message, op.location, op.name, hint))
