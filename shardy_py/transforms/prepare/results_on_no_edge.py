"""Results of data-flow ops that are on no edge: they are replicated, whatever an annotation says."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.data_flow import edge_members
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import data_flow_ops
from shardy_py.ir.interfaces.ops import OpSemantics, ShardableDataFlowOpInterface
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue


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
        given = op.program.shardings.pop(value.id, None)
        if len(annotated) == len(op.results):
            given, rank = annotated[value.index], value.type.rank if isinstance(value.type, TensorType) else 0
            annotated[value.index] = TensorSharding.fully_closed(given.mesh, rank)
        if given is not None and not given.is_fully_replicated:
            message = f"the sharding {given} of result {value.index} is left out: the result is on no data-flow edge"
            hint = "put a sharding constraint behind the op, or the result on an edge"
            yield Diagnostic("sharding-on-no-edge", message, op.location, op.name, hint)
    if tuple(annotated) != before:
        op.attributes[SHARDING] = TensorShardingPerValue(tuple(annotated))
