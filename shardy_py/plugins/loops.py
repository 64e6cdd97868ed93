"""The data flow of ordinary loops and branches, so that most dialects need not write theirs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from shardy_py.ir.graph import Op, Value
from shardy_py.ir.interfaces import OpOperand, ShardableDataFlowOpInterface


@frozen
class LoopDataFlow(ShardableDataFlowOpInterface):
    """Loop-carried values: initial value, argument of every region, what the region hands back, and result, in order.

    Each result owns the edge of its values. What stands before the carried values is skipped.

    Args:
        first_operand: The number of the operand that is the first initial value, after bounds and the like.
        first_argument: The number of the region argument that is the first carried value, after a counter.
        first_yielded: The number of the terminator's operand that is the first next value, after a condition.
    """

    first_operand: int = 0
    first_argument: int = 0
    first_yielded: int = 0

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the initial value, then what each region hands back."""
        initial = OpOperand(op, self.first_operand + owner.index)
        ends = [region.blocks[0].terminator for region in op.regions if region.blocks]
        number = self.first_yielded + owner.index
        return [initial, *(OpOperand(end, number) for end in ends if end is not None and number < len(end.operands))]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result with the number of the result or argument."""
        return _at(op.results, target.index if target.owner is op else target.index - self.first_argument)

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of the initial or next value."""
        return _at(op.results, source.number - (self.first_operand if source.op is op else self.first_yielded))

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of each region."""
        number = self.first_argument + owner.index
        blocks = [region.blocks[0] for region in op.regions if region.blocks]
        return [block.arguments[number] for block in blocks if number < len(block.arguments)]


@frozen
class BranchDataFlow(ShardableDataFlowOpInterface):
    """Branches: what each region hands back flows into the results, in order; operands and arguments take no part.

    Each result owns the edge of its values. A region without blocks, such as a missing else, hands nothing back.

    Args:
        first_yielded: The number of the terminator's operand that is the first result.
    """

    first_yielded: int = 0

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return what each region hands back."""
        number = self.first_yielded + owner.index
        ends = [region.blocks[0].terminator for region in op.regions if region.blocks]
        return [OpOperand(end, number) for end in ends if end is not None and number < len(end.operands)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result itself."""
        return target if target.owner is op else None

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of what a region hands back."""
        return None if source.op is op else _at(op.results, source.number - self.first_yielded)


def _at(values: Sequence[Value], index: int) -> Value | None:
    return values[index] if 0 <= index < len(values) else None
