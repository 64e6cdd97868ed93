"""Ops through which values flow: loops, branches and barriers. Each result owns the edge of its values.

Mirrors stablehlo_extensions.cc::WhileShardableDataFlowOpInterface and
stablehlo_extensions.cc::CaseShardableDataFlowOpInterface.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import flag_of, integer_of, integers_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import (
    BranchCost,
    IsolatedFromAbove,
    IsTerminator,
    OpOperand,
    Pure,
    RecursiveMemoryEffects,
    ShardableDataFlowOpInterface,
    UpstreamDataFlow,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.values import NoFields

FACETS = LazyFacets(__name__)
BARRIER, RETURN = "stablehlo.optimization_barrier", "stablehlo.return"


def register(definitions: Definitions) -> None:
    """Define loops, branches, barriers and the terminator of regions."""
    definitions.define(
        "stablehlo.while",
        traits=(RecursiveMemoryEffects, UpstreamDataFlow),
        data_flow=WhileDataFlow(),
        cost=FACETS.cost("WhileCost"),
    )
    definitions.define("stablehlo.case", traits=(RecursiveMemoryEffects,), data_flow=CaseDataFlow(), cost=BranchCost())
    definitions.define("stablehlo.if", traits=(RecursiveMemoryEffects,), cost=BranchCost())
    definitions.define(BARRIER, data_flow=BarrierDataFlow(), local=local_by_types)
    definitions.define(RETURN, traits=(Pure, IsTerminator))
    definitions.define("mhlo.scan", scan_rule, traits=(IsolatedFromAbove, RecursiveMemoryEffects))
    definitions.define("chlo.scan", traits=(IsolatedFromAbove, RecursiveMemoryEffects))


def scan_rule(op: Op) -> OpShardingRule | None:
    """Pass all dimensions but the scanned one between inputs, outputs, starts and carries.

    Shards of the scanned dimension of an associative scan exchange their totals; any other scan replicates it. Where
    the body changes shapes, only the scanned dimension has a factor.

    XLA's dumps print the same rules.
    """
    num_inputs, num_outputs = (
        next(iter(integers_of(op, name)), 0) for name in ("operandSegmentSizes", "resultSegmentSizes")
    )
    inputs, starts = op.operands[:num_inputs], op.operands[num_inputs:]
    outputs, scanned = op.results[:num_outputs], integer_of(op, "dimension")
    if not inputs or not outputs:
        return None
    shape = tensor_shape(inputs[0])
    rest = (*shape[:scanned], *shape[scanned + 1 :])
    keeps_shapes = len(inputs) == len(outputs) == len(starts)
    keeps_shapes = keeps_shapes and all(tensor_shape(value) == shape for value in (*inputs, *outputs))
    keeps_shapes = keeps_shapes and all(tensor_shape(value) == rest for value in starts)
    is_associative = flag_of(op, "is_associative") and keeps_shapes
    builder = OpShardingRuleBuilder.for_op(op)
    num_carries = len(op.results) - num_outputs
    for dim, size in enumerate(shape):
        kind = FactorKind.PASS_THROUGH
        carried = None if dim == scanned else dim - (dim > scanned)
        if dim == scanned:
            kind = FactorKind.PERMUTATION if is_associative else FactorKind.NEED_REPLICATION
        elif not keeps_shapes:
            continue
        operand_dims = [dim] * num_inputs + [carried] * len(starts)
        builder.add_factor(operand_dims, [dim] * num_outputs + [carried] * num_carries, size, kind=kind)
    return builder.build()


class _ResultOwners(ShardableDataFlowOpInterface):
    """The edges of ops whose results own them and whose sources have the number of their result."""

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result of the same number."""
        return op.results[target.index]

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the result of the same number."""
        return op.results[source.number]


class WhileDataFlow(NoFields, _ResultOwners):
    """A loop: initial value and yielded value flow into the arguments of both regions and into the result."""

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the initial value, then what the body yields."""
        return [OpOperand(op, owner.index), OpOperand(_terminator(op, 1), owner.index)]

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the argument of the condition, then that of the body."""
        return [region.blocks[0].arguments[owner.index] for region in op.regions[:2]]


class CaseDataFlow(NoFields, _ResultOwners):
    """Branches: what each yields flows into the result."""

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the yielded value of each branch."""
        return [OpOperand(_terminator(op, number), owner.index) for number in range(len(op.regions))]

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the result itself; branches have no arguments."""
        return target if target.owner is op else None


class BarrierDataFlow(NoFields, _ResultOwners):
    """A barrier: each operand flows into its result."""

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the operand of the same number."""
        return [OpOperand(op, owner.index)]


def _terminator(op: Op, region: int) -> Op:
    terminator = op.regions[region].blocks[0].terminator
    if terminator is None:
        raise ValueError(f"region {region} of {op!r} has no terminator")
    return terminator
