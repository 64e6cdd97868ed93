"""Data-flow edges in the graph: which value carries the sharding of which other value."""

from __future__ import annotations

from shardy_py.ir.graph import Op, Value
from shardy_py.ir.interfaces import IsTerminator, OpOperand, OpSemantics

DATA_FLOW_EDGE = "sdy.data_flow_edge"
FUNC_DATA_FLOW_EDGE = "sdy.func_data_flow_edge"


def edge_user(owner: Value | None) -> Op | None:
    """Return the ``sdy.data_flow_edge`` that uses the owner of an edge, or None.

    An owner has no other use once edges are added, so a second use means that there is no edge.
    """
    if owner is None or len(owner.uses) != 1:
        return None
    user = owner.uses[0][0]
    return user if user.name == DATA_FLOW_EDGE else None


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
        The value, or None for an argument of any other region (the body of a reduction, for example): it has none.
    """
    op = _owning_op(value)
    if op is None:
        return None
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        return value if not value.is_block_argument or op.name == "func.func" else None
    owner = data_flow.get_edge_owner_from_target(op, value)
    edge = edge_user(owner)
    if edge is not None:
        return edge.results[0]
    return owner if value.is_block_argument else value


def _owning_op(value: Value) -> Op | None:
    owner = value.owner
    return owner if isinstance(owner, Op) else owner.parent_op
