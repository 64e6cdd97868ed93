"""Add an op for every data-flow edge of an op or of a call, so that propagation visits it like any op.

Mirrors add_data_flow_edges.cc::AddDataFlowEdgesPass and add_func_data_flow_edges.cc::AddFuncDataFlowEdgesPass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.data_flow import add_edge, edge_members, edge_user
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.op_names import CALL, FUNC_DATA_FLOW_EDGE
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.symbols import has_body
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.graph.walk import data_flow_ops, entry_arguments, ops_named
from shardy_py.ir.interfaces.ops import OpSemantics, ShardableDataFlowOpInterface
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue
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


class AddFuncDataFlowEdgesPass(NoFields):
    """Insert an ``sdy.func_data_flow_edge`` after each function argument and call result; all its users use the edge.

    The arguments of the main function get none: nobody in the module calls it.
    """

    name: ClassVar[str] = "sdy-add-func-data-flow-edges"

    def run(self, program: Program, context: PassContext) -> None:
        """Add the edges, with the shardings of their values.

        Raises:
            UnsupportedError: several functions, none of them ``main``.
        """
        main = main_function(program)
        for function in program.functions.values():
            if function is not main and has_body(function):
                _add_edges(program, entry_arguments(function), function.regions[0].blocks[0], None)
        for call in ops_named(program, CALL):
            if call.parent is not None:
                _add_edges(program, call.results, call.parent, call)


def _add_edges(program: Program, values: Iterable[Value], block: Block, anchor: Op | None) -> None:
    """Insert the edges of values after an op, in order; at the start of the block where that is None."""
    for value in values:
        if static_shape(value.type) is None:
            continue
        edge = Op(program, FUNC_DATA_FLOW_EDGE, [value], [value.type])
        anchor = block.insert_after(anchor, edge)
        value.replace_all_uses_with(edge.result, except_op=edge)
        sharding = program.shardings.get(value.id)
        if sharding is not None:
            program.shardings[edge.result.id] = sharding


def replicate_results_on_no_edge(program: Program, semantics: OpSemantics) -> tuple[Diagnostic, ...]:
    """Replicate the results of data-flow ops that are on no edge, and return a warning for each annotation left out.

    Nothing says how such a result is put together in the regions of its op, so each device makes the whole of it.

    Args:
        program: The program, with the shardings in the attributes of its ops.
        semantics: What is known about ops.
    """
    return tuple(
        warning
        for op in data_flow_ops(program, semantics)
        if (data_flow := semantics.get_data_flow(op)) is not None
        for warning in _replicate(op, data_flow)
    )


def _replicate(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[Diagnostic]:
    if len(data_flow.get_op_result_edge_owners(op)) == len(op.results):
        # So it is for nearly every op.
        return
    targets = edge_members(op, data_flow).targets
    held = op.attributes.get(SHARDING)
    before = held.shardings if isinstance(held, TensorShardingPerValue) else ()
    annotated = list(before)
    for value in op.results:
        if value.id in targets:
            continue
        sharding = op.program.shardings.pop(value.id, None)
        if len(annotated) == len(op.results):
            sharding, rank = annotated[value.index], value.type.rank if isinstance(value.type, TensorType) else 0
            annotated[value.index] = TensorSharding.fully_closed(sharding.mesh, rank)
        if sharding is not None and not sharding.is_fully_replicated:
            message = f"the sharding {sharding} of result {value.index} is left out: the result is on no data-flow edge"
            hint = "put a sharding constraint behind the op, or the result on an edge"
            yield Diagnostic("sharding-on-no-edge", message, op.location, op.name, hint)
    if tuple(annotated) != before:
        op.attributes[SHARDING] = TensorShardingPerValue(tuple(annotated))
