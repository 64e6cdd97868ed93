"""The shardings that operands are handed on with: those of function results, of arguments, and of edge owners."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import field

from shardy_py.ir.graph.data_flow import EdgeMembers, edge_members
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL, FUNCTION, RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import entry_arguments
from shardy_py.ir.interfaces.ops import (
    DataFlowShardingTransformType,
    IsTerminator,
    OpSemantics,
    ShardableDataFlowOpInterface,
)
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define


@define
class Receivers:
    """The values that get operands, in one program.

    Attributes:
        program: The global program; the shardings of its functions are read before these change.
        semantics: What is known about ops.
        sharding_of: Gives the sharding of a value.
    """

    program: Program
    semantics: OpSemantics
    sharding_of: Callable[[Value], TensorSharding | None]
    _arguments: dict[str, list[TensorSharding | None]] = field(init=False)
    _results: dict[str, list[TensorSharding | None]] = field(init=False)
    _edges: dict[int, EdgeMembers] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        functions, sharding = self.program.functions, self.program.sharding
        self._arguments = {name: list(map(sharding, entry_arguments(item))) for name, item in functions.items()}
        self._results = {name: list(map(sharding, item.function_results)) for name, item in functions.items()}

    def results_of(self, function: str | None) -> Sequence[TensorSharding | None]:
        """Return the shardings of the results of a function; () where there is none of this name."""
        return self._results.get(function or "", ())

    def members(self, op: Op, flow: ShardableDataFlowOpInterface) -> EdgeMembers:
        """Return the values on the edges of an op."""
        if op.id not in self._edges:
            self._edges[op.id] = edge_members(op, flow)
        return self._edges[op.id]

    def sharding(self, op: Op, number: int, default: TensorSharding | None) -> TensorSharding | None:
        """Return the sharding of the value that gets an operand; None where it gets the whole tensor.

        This is a result of a function, an argument of one that is called, or the owner of an edge. What is on no edge
        is whole, as nothing says how it is sharded on the other side.

        Args:
            op: The op.
            number: The number of the operand.
            default: The sharding of the operand, for an op that hands nothing on.
        """
        parent = op.parent_op
        if op.name == RETURN and parent is not None:
            return self.program.sharding(parent.function_results[number])
        if op.name == CALL:
            arguments = self._arguments.get(callee_of(op) or "", ())
            return arguments[number] if number < len(arguments) else default
        is_end = parent is not None and self._ends_region(op)
        region_op = parent if parent is not None and is_end else op
        flow = self.semantics.get_data_flow(region_op)
        if flow is None:
            return None if is_end and region_op.name != FUNCTION else default
        owner = self.members(region_op, flow).sources.get((op.id, number))
        sharding = None if owner is None else self.sharding_of(owner)
        if owner is None or sharding is None:
            return None
        before = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
        return flow.transform_target_sharding(region_op, owner, sharding, before)

    def _ends_region(self, op: Op) -> bool:
        """Return whether an op ends a region and hands its operands to the op around it."""
        if self.semantics.has_trait(op, IsTerminator):
            return True
        return not op.results and not op.regions and op.parent is not None and op.parent.last is op
