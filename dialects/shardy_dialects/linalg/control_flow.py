"""Loops and branches of the dialect scf: their data flow."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import (
    BranchCost,
    BranchDataFlow,
    CountedLoopCost,
    Dialect,
    IsTerminator,
    LoopDataFlow,
    OpOperand,
    Pure,
    RecursiveMemoryEffects,
    ShardableDataFlowOpInterface,
)
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue
from shardy_py.values import NoFields

ARGUMENT_SHARDINGS = "scf.argument_shardings"
"""The attribute of a while loop that holds the shardings of the arguments of its condition."""


class ScfWhileDataFlow(NoFields, ShardableDataFlowOpInterface):
    """A loop whose condition decides what the body and the results get: two edges per round.

    Initial values and what the body hands back flow into the arguments of the condition, which own these edges. What
    the condition hands on flows into the results, which own theirs, and the arguments of the body. The condition may
    hand on other values than it got, so that the two differ in number and type.
    """

    def get_block_argument_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return the arguments of the condition."""
        return op.regions[0].block.arguments

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the sources of an argument of the condition, or of a result."""
        condition, body = (_terminator(op, number) for number in (0, 1))
        if owner.owner is op:
            return [OpOperand(condition, owner.index + 1)]
        return [OpOperand(op, owner.index), OpOperand(body, owner.index)]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result for an argument of the body, anything else itself."""
        return op.results[target.index] if target.owner is op.regions[1].block else target

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result for what the condition hands on, else the argument of the condition."""
        if source.op is not _terminator(op, 0):
            return op.regions[0].block.arguments[source.number]
        return op.results[source.number - 1] if source.number else None

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of the body with the number of a result."""
        return [op.regions[1].block.arguments[owner.index]] if owner.owner is op else []

    def get_block_argument_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the shardings of the arguments of the condition."""
        per_argument = op.attributes.get(ARGUMENT_SHARDINGS)
        return per_argument.shardings if per_argument is not None else ()

    def set_block_argument_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the shardings of the arguments of the condition."""
        op.attributes[ARGUMENT_SHARDINGS] = TensorShardingPerValue(tuple(shardings))


def _terminator(op: Op, region: int) -> Op:
    terminator = op.regions[region].block.terminator
    if terminator is None:
        raise ValueError(f"region {region} of {op!r} has no terminator")
    return terminator


def _constant(value: Value) -> int | None:
    """Return the number of a constant."""
    producer = value.defining_op
    number = producer.attributes.get("value") if producer is not None and not producer.operands else None
    return number if isinstance(number, int) else None


def register(dialect: Dialect) -> None:
    """Define the ops with regions and their terminators."""
    # Bounds and step come before the initial values, the counter before the carried ones.
    counted = LoopDataFlow(first_operand=3, first_argument=1)
    dialect.op("scf.for", traits=[RecursiveMemoryEffects], data_flow=counted, cost=CountedLoopCost(_constant))
    dialect.op("scf.while", traits=[RecursiveMemoryEffects], data_flow=ScfWhileDataFlow())
    for name in ("if", "index_switch", "execute_region"):
        dialect.op(f"scf.{name}", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow(), cost=BranchCost())
    dialect.op("scf.yield", traits=[IsTerminator, Pure])
    dialect.op("scf.condition", traits=[IsTerminator, Pure])
