"""Checking that what an op says of its data-flow edges fits together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.data_flow import values_on_no_edge
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.ops import OpOperand, ShardableDataFlowOpInterface
from shardy_py.plugins import Registry
from shardy_py.plugins.check_data_flow import data_flow_problems
from shardy_py.support.arguments import checked


@checked
def assert_data_flow(
    op: Op, *, registry: Registry | None = None, on_no_edge: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Assert that the methods of an op's data flow say the same of every edge, and list the values on no edge.

    Besides what `shardy_py.propagate` checks of every op (that sources, targets and owners are values that can be, of
    the same sizes, and that each target leads back to its owner), each source leads back to its owner, each edge has a
    source, and nothing is in two edges.

    Args:
        op: An op with its regions, as `shardy_py.ir.Builder` makes it.
        registry: What is known about the op; by default that of the installed plugins.
        on_no_edge: The values that may be on no edge, as the list names them; None for any. No sharding goes through
            these values, and a local program gathers them.

    Returns:
        The operands, region arguments, yielded values and results on no edge, such as ``operand 0``.

    Raises:
        AssertionError: something does not fit; the message names the edge, the value and the method.
        OptionError: the op has no data flow.
    """
    semantics = registry or Registry.from_entry_points(skip_broken=True)
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        raise OptionError(Diagnostic("no-data-flow", "the op has no data-flow edges to check", op=op.name))
    problems = [item.message for item in data_flow_problems(op, data_flow)] or list(_stricter(op, data_flow))
    if problems:
        raise AssertionError(f"the data flow of '{op.name}' does not fit together\n  " + "\n  ".join(problems))
    outside = tuple(
        _source(op, item) if isinstance(item, OpOperand) else _value(op, item)
        for item in values_on_no_edge(op, data_flow)
    )
    unexpected = [item for item in outside if on_no_edge is not None and item not in on_no_edge]
    if unexpected:
        raise AssertionError(f"the data flow of '{op.name}' has these values on no edge: {', '.join(unexpected)}")
    return outside


def _stricter(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[str]:
    owners = [*data_flow.get_block_argument_edge_owners(op), *data_flow.get_op_result_edge_owners(op)]
    seen: dict[object, str] = {}
    for owner in owners:
        edge = f"the edge of {_value(op, owner)}"
        sources = data_flow.get_edge_sources(op, owner)
        if not sources:
            yield f"{edge} has no source: get_edge_sources"
        for source in sources:
            source_owner = data_flow.get_edge_owner_from_source(op, source)
            if source_owner is not owner:
                yield f"{edge}: {_source(op, source)} leads to {_value(op, source_owner)}: get_edge_owner_from_source"
            yield from _second_edge(seen, (source.op.id, source.number), _source(op, source), edge)
        for target in (owner, *data_flow.get_non_edge_owner_targets(op, owner)):
            yield from _second_edge(seen, target.id, _value(op, target), edge)


def _second_edge(seen: dict[object, str], key: object, description: str, edge: str) -> Iterator[str]:
    other = seen.setdefault(key, edge)
    if other != edge:
        yield f"{description} is in {other} and in {edge}"


def _source(op: Op, source: OpOperand) -> str:
    return f"operand {source.number}" + ("" if source.op is op else f" of {source.op.name}{_region(op, source.op)}")


def _value(op: Op, value: Value | None) -> str:
    if value is None:
        return "no edge"
    if value.owner is op:
        return f"result {value.index}"
    if value.owning_op is not op:
        return f"a value of {value.owning_op.name}"
    regions = [number for number, region in enumerate(op.regions) if value.owner in region.blocks]
    return f"argument {value.index} of region {regions[0]}"


def _region(op: Op, inner: Op) -> str:
    regions = [number for number, region in enumerate(op.regions) if inner.parent in region.blocks]
    return f" in region {regions[0]}" if len(op.regions) > 1 else ""
