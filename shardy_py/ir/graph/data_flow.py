"""Data-flow edges in the graph: values that carry the shardings of other values.

Mirrors utils.cc::getShardableValue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shardy_py.ir.graph.op_names import DATA_FLOW_EDGE, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.ops import IsTerminator, OpOperand, OpSemantics, ShardableDataFlowOpInterface


class EdgeMembers(NamedTuple):
    """The values on the edges of one data-flow op, each with the owner of its edge.

    Args:
        sources: The id of the op that uses a source, and the number of its operand, to the owner.
        targets: The id of a target to the owner, which is a target itself.
    """

    sources: Mapping[tuple[int, int], Value]
    targets: Mapping[int, Value]


def edge_members(op: Op, data_flow: ShardableDataFlowOpInterface) -> EdgeMembers:
    """Return the sources and targets of all edges of an op."""
    sources: dict[tuple[int, int], Value] = {}
    targets: dict[int, Value] = {}
    for owner in (*data_flow.get_op_result_edge_owners(op), *data_flow.get_block_argument_edge_owners(op)):
        for source in data_flow.get_edge_sources(op, owner):
            sources.setdefault((source.op.id, source.number), owner)
        for target in (owner, *data_flow.get_non_edge_owner_targets(op, owner)):
            targets.setdefault(target.id, owner)
    return EdgeMembers(sources, targets)


def values_on_no_edge(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[OpOperand | Value]:
    """Yield operands, region arguments and results of an op that are on no edge."""
    members = edge_members(op, data_flow)
    ends = [block.last for region in op.regions for block in region.blocks if block.last is not None]
    for user in (op, *(end for end in ends if not end.results)):
        for number in range(len(user.operands)):
            if (user.id, number) not in members.sources:
                yield OpOperand(user, number)
    for value in (*region_arguments(op), *op.results):
        if value.id not in members.targets:
            yield value


def edge_user(owner: Value | None) -> Op | None:
    """Return the ``sdy.data_flow_edge`` that uses the owner of an edge, or None.

    An owner has no other use once edges are added, so a second use means that there is no edge.
    """
    if owner is None or len(owner.uses) != 1:
        return None
    user = owner.uses[0][0]
    return user if user.name == DATA_FLOW_EDGE else None


def add_edge(program: Program, owner: Value) -> None:
    """Insert an edge op after its owner, with the owner's sharding; all users of the owner use the edge instead.

    The uses come out as when they move one after the other, newest first: in reverse order.
    """
    edge = Op(program, DATA_FLOW_EDGE, (owner,), (owner.type,), register_uses=False)
    owner.insert_after(edge)
    result = edge.results[0]
    owner.replace_all_uses_with(result)
    edge.register_uses()
    sharding = program.shardings.get(owner.id)
    if sharding is not None:
        program.shardings[result.id] = sharding


def take_out_edge(program: Program, edge: Op) -> None:
    """Remove an edge op; its users use the owner, whose sharding stays as it is."""
    owner, result = edge.operands[0], edge.results[0]
    edge.replace_operands(())
    result.replace_all_uses_with(owner)
    program.shardings.pop(result.id, None)
    if edge.parent is not None:
        edge.parent.remove(edge)


def edge_of_target(target: Value, semantics: OpSemantics) -> Op | None:
    """Return the edge op of which a value is a target (the owner or another one), or None."""
    op = _owning_op(target)
    data_flow = semantics.get_data_flow(op) if op else None
    if op is None or data_flow is None:
        return None
    return edge_user(data_flow.get_edge_owner_from_target(op, target))


def edge_of_source(source: OpOperand, semantics: OpSemantics) -> Op | None:
    """Return the edge op of which an operand is a source, or None.

    Sources are operands of the data-flow op, or of terminators in its regions.
    """
    op: Op | None = source.op
    if semantics.has_trait(source.op, IsTerminator):
        op = source.op.parent_op
    data_flow = semantics.get_data_flow(op) if op else None
    if op is None or data_flow is None:
        return None
    return edge_user(data_flow.get_edge_owner_from_source(op, source))


def shardable_value(value: Value, semantics: OpSemantics) -> Value | None:
    """Return the value that carries the sharding of a value.

    The targets of an edge are carried by the result of their edge op, or by the owner where there is no edge op.
    Other results, and arguments of functions, carry their own.

    Returns:
        The value, or None for what has none: an argument of any other region (the body of a reduction, for example),
        and a result of a data-flow op that is on no edge.
    """
    op = _owning_op(value)
    if op is None:
        return None
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        return value if not value.is_block_argument or op.name == FUNCTION else None
    return target_carrier(op, data_flow, value)


def target_carrier(op: Op, data_flow: ShardableDataFlowOpInterface, value: Value) -> Value | None:
    """Return the value that carries the sharding of a region argument or result of a data-flow op, or None."""
    owner = data_flow.get_edge_owner_from_target(op, value)
    edge = edge_user(owner)
    return owner if edge is None else edge.results[0]


def _owning_op(value: Value) -> Op | None:
    owner = value.owner
    return owner if isinstance(owner, Op) else owner.parent_op
