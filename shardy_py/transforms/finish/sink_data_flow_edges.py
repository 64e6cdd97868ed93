"""Move the shardings of data-flow edges back to the ops, calls and functions they belong to, and remove the edge ops.

Mirrors sink_data_flow_edges.cc::SinkDataFlowEdgesPass and sink_func_data_flow_edges.cc::SinkFuncDataFlowEdgesPass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.data_flow import edge_user, take_out_edge
from shardy_py.ir.graph.op_names import DATA_FLOW_EDGE, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import set_sharding
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import data_flow_ops, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields, frozen

_ORIGINS = "sharding_origins"
_EDGES = "propagation_edges"


@frozen
class SinkDataFlowEdgesPass:
    """Replace every ``sdy.data_flow_edge`` by its owner, which gets the sharding of the edge.

    Args:
        sink_debug_sharding_origins: Collect the edges' ``sdy.sharding_origins`` on the data-flow op.
        sink_debug_propagation_edge_sharding: Collect the edges' ``sdy.propagation_edges`` on the data-flow op.
    """

    name: ClassVar[str] = "sdy-sink-data-flow-edges"

    sink_debug_sharding_origins: bool = False
    sink_debug_propagation_edge_sharding: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Sink the edges of all ops of a program."""
        semantics = context.semantics
        for op in data_flow_ops(program, semantics):
            data_flow = semantics.get_data_flow(op)
            if data_flow is not None:
                self._sink(program, op, "block_arg", data_flow.get_block_argument_edge_owners(op))
                self._sink(program, op, "result", data_flow.get_op_result_edge_owners(op))
        for edge in ops_named(program, DATA_FLOW_EDGE):
            take_out_edge(program, edge)

    def _sink(self, program: Program, op: Op, kind: str, owners: Sequence[Value]) -> None:
        edges = [edge_user(owner) for owner in owners]
        sink_shardings(program, owners, edges)
        if self.sink_debug_sharding_origins:
            _collect_debug_info(op, kind, _ORIGINS, edges)
        if self.sink_debug_propagation_edge_sharding:
            _collect_debug_info(op, kind, _EDGES, edges)


def sink_shardings(program: Program, owners: Sequence[Value], edges: Sequence[Op | None]) -> bool:
    """Give the owners the shardings of their edges.

    The op holds all of them in one attribute: as soon as one edge has a sharding, the others get a fully open one
    over the same mesh, even in place of a sharding the owner had.

    Returns:
        Whether there was a sharding, and all owners have one now.
    """
    table = program.shardings
    shardings = [None if edge is None else table.get(edge.results[0].id) for edge in edges]
    for first in shardings:
        if first is not None:
            break
    else:
        return False
    for owner, sharding in zip(owners, shardings, strict=True):
        table[owner.id] = _fully_open(first.mesh, owner) if sharding is None else sharding
    return True


def _fully_open(mesh: str | Mesh, value: Value) -> TensorSharding:
    return TensorSharding.fully_open(mesh, value.type.rank if isinstance(value.type, TensorType) else 0)


def _collect_debug_info(op: Op, kind: str, info: str, edges: Sequence[Op | None]) -> None:
    entries = [edge.attributes.get(f"sdy.{info}") for edge in edges if edge]
    op.attributes[f"sdy.{kind}_{info}"] = tuple(
        item for item in entries if item is not None and not _is_empty(info, item)
    )


def _is_empty(info: str, value: Attribute) -> bool:
    """Return whether a list of propagation edges has none; an empty dictionary of origins does count."""
    return info == _EDGES and str(value).endswith("<[]>")


class SinkFuncDataFlowEdgesPass(NoFields):
    """Replace every ``sdy.func_data_flow_edge`` by its operand, which takes over its sharding.

    An edge without a sharding opens the one its value had.
    """

    name: ClassVar[str] = "sdy-sink-func-data-flow-edges"

    def run(self, program: Program, context: PassContext) -> None:
        """Sink all edges of a program."""
        table = program.shardings
        for edge in ops_named(program, FUNC_DATA_FLOW_EDGE):
            value, result = edge.operands[0], edge.results[0]
            sharding = table.pop(result.id, None)
            old = table.get(value.id)
            if sharding is not None:
                set_sharding(program, value, sharding)
            elif old is not None:
                set_sharding(program, value, TensorSharding.fully_open(old.mesh, old.rank))
            result.replace_all_uses_with(value)
            edge.erase()
