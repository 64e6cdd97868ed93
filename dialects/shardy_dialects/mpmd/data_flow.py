"""The data-flow edges of fragments, named computations and loops.

Mirrors mpmd/ir/dialect.cc: FragmentOp and ForOp as ShardableDataFlowOpInterface.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import OpOperand, ShardableDataFlowOpInterface
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

_SHARDING = "sdy.sharding"


class NamedBodyDataFlow(ShardableDataFlowOpInterface):
    """An op with one region: operands flow into its arguments, and what its terminator returns into its results."""

    def get_block_argument_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return all arguments of the region."""
        return op.regions[0].block.arguments

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the operand of an argument, or the terminator's operand of a result."""
        if owner.owner is not op:
            return (OpOperand(op, owner.index),)
        terminator = op.regions[0].block.terminator
        return (OpOperand(terminator, owner.index),) if terminator else ()

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the target itself."""
        return target

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the argument of an operand, the result of the terminator's operand."""
        targets = op.regions[0].block.arguments if source.op is op else op.results
        return targets[source.number] if source.number < len(targets) else None


class FragmentDataFlow(NamedBodyDataFlow):
    """As `NamedBodyDataFlow`; the shardings are attributes of the fragment, and its tensors are of whole shards."""

    def get_block_argument_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the ``in_shardings``."""
        return _shardings(op, "in_shardings")

    def set_block_argument_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the ``in_shardings``."""
        op.attributes["in_shardings"] = TensorShardingPerValue(tuple(shardings))

    def get_op_result_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the ``out_shardings``."""
        return _shardings(op, "out_shardings")

    def set_op_result_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Set the ``out_shardings``."""
        op.attributes["out_shardings"] = TensorShardingPerValue(tuple(shardings))

    def should_keep_edge_owner_shardings_divisible(self, op: Op) -> bool:
        """Return true: a fragment becomes a function whose arguments and results are whole shards."""
        return True


class LoopCarriedDataFlow(ShardableDataFlowOpInterface):
    """A loop: what it carries has one sharding before, inside and after it; the index has none."""

    def get_op_result_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return all results."""
        return op.results

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the operand of a result, and the terminator's operand of it."""
        terminator = op.regions[0].block.terminator
        ends = (OpOperand(terminator, owner.index),) if terminator else ()
        return (OpOperand(op, owner.index), *ends)

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of a result."""
        return (op.regions[0].block.arguments[owner.index],)

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result that stands for an argument or for itself."""
        return op.results[target.index] if target.index < len(op.results) else None

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result of an operand."""
        return op.results[source.number] if source.number < len(op.results) else None


def _shardings(op: Op, attribute: str) -> tuple[TensorSharding, ...]:
    value = op.attributes.get(attribute)
    return value.shardings if value is not None else ()
