"""An op for every data-flow edge, so that propagation visits it like any other op.

Mirrors add_data_flow_edges.cc::AddDataFlowEdgesPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.data_flow import add_edge, edge_user
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import data_flow_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class AddDataFlowEdgesPass(NoFields):
    """Insert an ``sdy.data_flow_edge`` after the owner of each edge; all users of the owner use it instead."""

    name: ClassVar[str] = "sdy-add-data-flow-edges"

    def run(self, program: Program, context: PassContext) -> None:
        """Add the edges of all ops of a program; owners that have one already keep it."""
        semantics = context.semantics
        for op in data_flow_ops(program, semantics):
            data_flow = semantics.get_data_flow(op)
            if data_flow is not None:
                add_edges(program, data_flow.get_block_argument_edge_owners(op))
                add_edges(program, data_flow.get_op_result_edge_owners(op))


def add_edges(program: Program, owners: Sequence[Value]) -> None:
    """Insert an edge op after each owner, with the owner's sharding.

    Owners without a static shape, such as tokens, get none: they have no sharding.
    """
    # Each edge goes directly after its owner, so that going backwards leaves them in the order of the owners.
    for owner in reversed(owners):
        if static_shape(owner.type) is not None and edge_user(owner) is None:
            add_edge(program, owner)
