"""Data flow of ordinary loops and branches, for dialects to use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.ir.error_texts import shown
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.guard import Unfit
from shardy_py.ir.interfaces import OpOperand, ShardableDataFlowOpInterface
from shardy_py.values import frozen


def _is_count(flow: Any, attribute: Any, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        message = f"{attribute.name} of {type(flow).__name__} is {shown(number)}, not a number of 0 or more"
        raise PluginError(Diagnostic("invalid-data-flow", message))


@frozen
class LoopDataFlow(ShardableDataFlowOpInterface):
    """Loop-carried values: initial value, argument of every region, yielded value, and result, in order.

    Each result owns the edge of its values. Operands and arguments before the carried values are skipped.

    Args:
        first_operand: The number of the operand that is the first initial value, after bounds and the like.
        first_argument: The number of the region argument that is the first carried value, after a counter.
        first_yielded: The number of the terminator's operand that is the first next value, after a condition.
        yielding: The numbers of the regions that yield next values, if others do not, such as that of a
            condition; None for all.
    """

    first_operand: int = field(default=0, validator=_is_count)
    first_argument: int = field(default=0, validator=_is_count)
    first_yielded: int = field(default=0, validator=_is_count)
    yielding: tuple[int, ...] | None = field(default=None, kw_only=True)

    def _ends(self, op: Op) -> list[Op]:
        """Return the terminators that yield the next values."""
        wanted = range(len(op.regions)) if self.yielding is None else self.yielding
        blocks = [region.blocks[0] for number, region in enumerate(op.regions) if region.blocks and number in wanted]
        return [block.terminator for block in blocks if block.terminator is not None]

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the initial value, then the yielded value of each region."""
        initial = OpOperand(op, self.first_operand + owner.index)
        number = self.first_yielded + owner.index
        return [initial, *(OpOperand(end, number) for end in self._ends(op) if number < len(end.operands))]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result with the number of the result or argument."""
        return _at(op.results, target.index if target.owner is op else target.index - self.first_argument)

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of the initial or next value."""
        if source.op is op:
            return _at(op.results, source.number - self.first_operand)
        return _at(op.results, source.number - self.first_yielded) if source.op in self._ends(op) else None

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of each region."""
        number = self.first_argument + owner.index
        blocks = [region.blocks[0] for region in op.regions if region.blocks]
        for end in self._ends(op):
            count = len(end.parent.arguments) if end.parent else 0
            if count <= number:
                message = f"finds no argument {number} for result {owner.index}: a region has {count}"
                hint = "first_argument is the number of arguments before the carried ones; branches have BranchDataFlow"
                raise Unfit(message, hint)
        return [block.arguments[number] for block in blocks if number < len(block.arguments)]


@frozen
class BranchDataFlow(ShardableDataFlowOpInterface):
    """Branches: the yielded values of each region flow into the results, in order; operands and arguments take no part.

    Each result owns the edge of its values. A region without blocks, such as a missing else, yields nothing.

    Args:
        first_yielded: The number of the terminator's operand that is the first result.
    """

    first_yielded: int = field(default=0, validator=_is_count)

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the yielded value of each region."""
        number = self.first_yielded + owner.index
        ends = [region.blocks[0].terminator for region in op.regions if region.blocks]
        return [OpOperand(end, number) for end in ends if end is not None and number < len(end.operands)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result itself."""
        return target if target.owner is op else None

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of the yielded value."""
        return None if source.op is op else _at(op.results, source.number - self.first_yielded)


def _at(values: Sequence[Value], index: int) -> Value | None:
    return values[index] if 0 <= index < len(values) else None
