"""Data flow and costs of ordinary loops and branches, for dialects to use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, validators

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import InvalidAnswer
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.interfaces.costs import CostOpInterface
from shardy_py.ir.interfaces.ops import OpOperand, ShardableDataFlowOpInterface
from shardy_py.values import NoFields, frozen


def _is_count(flow: Any, attribute: Any, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        message = f"{attribute.name} of {type(flow).__name__} is {shown(number)}, not a number of 0 or more"
        raise PluginError(Diagnostic("invalid-data-flow", message))


def _is_function(cost: Any, attribute: Any, function: Any) -> None:
    if not callable(function):
        message = f"{attribute.name} of {type(cost).__name__} is {shown(function)}, not a function of a value"
        raise PluginError(Diagnostic("invalid-cost", message))


_IS_OPTIONAL_COUNT = validators.optional(_is_count)


@frozen
class LoopDataFlow(ShardableDataFlowOpInterface):
    """Loop-carried values: initial value, argument of every region, yielded value, and result, in order.

    Each carried result owns the edge of its values. Operands and arguments before the carried values are on no edge,
    nor are those behind them where ``carried`` says how many there are: a local program gathers them.

    Args:
        first_operand: The number of the operand that is the first initial value, after bounds and the like.
        first_argument: The number of the region argument that is the first carried value, after a counter.
        first_yielded: The number of the terminator's operand that is the first next value, after a condition.
        yielding: The numbers of the regions that yield next values, if others do not, such as that of a
            condition; None for all.
        carried: The number of results that are carried values; the results behind them are stacked outputs. None
            for all.
    """

    first_operand: int = field(default=0, validator=_is_count)
    first_argument: int = field(default=0, validator=_is_count)
    first_yielded: int = field(default=0, validator=_is_count)
    yielding: tuple[int, ...] | None = field(default=None, kw_only=True)
    carried: int | None = field(default=None, kw_only=True, validator=_IS_OPTIONAL_COUNT)

    def _ends(self, op: Op) -> list[Op]:
        """Return the terminators that yield the next values."""
        wanted = range(len(op.regions)) if self.yielding is None else self.yielding
        blocks = [region.blocks[0] for number, region in enumerate(op.regions) if region.blocks and number in wanted]
        return [block.terminator for block in blocks if block.terminator is not None]

    def get_op_result_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return the results that are carried values."""
        return op.results if self.carried is None else op.results[: self.carried]

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the initial value, then the yielded value of each region."""
        initial = OpOperand(op, self.first_operand + owner.index)
        number = self.first_yielded + owner.index
        return [initial, *(OpOperand(end, number) for end in self._ends(op) if number < len(end.operands))]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the carried result with the number of the result or argument."""
        return self._carried_at(op, target.index if target.owner is op else target.index - self.first_argument)

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the carried result with the number of the initial or next value."""
        if source.op is op:
            return self._carried_at(op, source.number - self.first_operand)
        return self._carried_at(op, source.number - self.first_yielded) if source.op in self._ends(op) else None

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of each region."""
        number = self.first_argument + owner.index
        blocks = [region.blocks[0] for region in op.regions if region.blocks]
        for end in self._ends(op):
            count = len(end.parent.arguments) if end.parent else 0
            if count <= number:
                message = f"finds no argument {number} for result {owner.index}: a region has {count}"
                hint = (
                    "first_argument is the number of arguments before the carried ones, carried that of the results "
                    "that are not stacked outputs; branches have BranchDataFlow"
                )
                raise InvalidAnswer(message, hint)
        return [block.arguments[number] for block in blocks if number < len(block.arguments)]

    def _carried_at(self, op: Op, index: int) -> Value | None:
        return _at(self.get_op_result_edge_owners(op), index)


@frozen
class BranchDataFlow(ShardableDataFlowOpInterface):
    """Branches: the yielded values of each region flow into the results, in order.

    Each result owns the edge of its values. Operands and region arguments are on no edge, and a local program gathers
    them, unless ``first_operand`` says which operands the regions take. A region without blocks, such as a missing
    else, yields nothing.

    Args:
        first_yielded: The number of the terminator's operand that is the first result.
        first_operand: The number of the operand that is the first argument of every region, after a condition. The
            argument of the first region owns the edge. None where regions take no operands.
    """

    first_yielded: int = field(default=0, validator=_is_count)
    first_operand: int | None = field(default=None, kw_only=True, validator=_IS_OPTIONAL_COUNT)

    def get_block_argument_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return the arguments that operands flow into, each of the first region that has it."""
        count = 0 if self.first_operand is None else max(len(op.operands) - self.first_operand, 0)
        blocks = _first_blocks(op)
        owners = (next(iter(_arguments_at(blocks, number)), None) for number in range(count))
        return [owner for owner in owners if owner is not None]

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the yielded value of each region for a result, the operand for an argument."""
        if owner.owner is not op:
            return [OpOperand(op, (self.first_operand or 0) + owner.index)]
        number = self.first_yielded + owner.index
        ends = [block.terminator for block in _first_blocks(op)]
        return [OpOperand(end, number) for end in ends if end is not None and number < len(end.operands)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return a result itself, the owner of the same number for an argument."""
        return target if target.owner is op else _at(self.get_block_argument_edge_owners(op), target.index)

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result with the number of the yielded value, the argument that an operand flows into."""
        if source.op is not op:
            return _at(op.results, source.number - self.first_yielded)
        if self.first_operand is None:
            return None
        return _at(self.get_block_argument_edge_owners(op), source.number - self.first_operand)

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the arguments of the other regions for an argument."""
        if owner.owner is op:
            return []
        return [value for value in _arguments_at(_first_blocks(op), owner.index) if value is not owner]


def _first_blocks(op: Op) -> list[Block]:
    return [region.blocks[0] for region in op.regions if region.blocks]


def _arguments_at(blocks: Sequence[Block], number: int) -> list[Value]:
    return [block.arguments[number] for block in blocks if number < len(block.arguments)]


def _at(values: Sequence[Value], index: int) -> Value | None:
    return values[index] if 0 <= index < len(values) else None


class BranchCost(NoFields, CostOpInterface):
    """One of the regions runs; which one is not known, so that all are equally likely."""

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the same fraction for each region."""
        return [1 / len(op.regions)] * len(op.regions)


@frozen
class CountedLoopCost(CostOpInterface):
    """A loop from one operand up to another by a third: it runs a known number of times where all are constant.

    Args:
        constant: Returns the number that a value always is, or None.
        first_operand: The number of the operand that is the lower bound; the upper bound and the step follow.
    """

    constant: Callable[[Value], int | None] = field(validator=_is_function)
    first_operand: int = field(default=0, validator=_is_count)

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the number of runs of the only region."""
        bounds = op.operands[self.first_operand : self.first_operand + 3]
        lower, upper, step = map(self.constant, bounds)
        if lower is None or upper is None or step is None or step <= 0:
            return [None]
        return [max(0, -(-(upper - lower) // step))]
