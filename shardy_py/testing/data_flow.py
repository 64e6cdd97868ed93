"""Checking that what an op says of its data-flow edges fits together."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.interfaces import OpOperand, ShardableDataFlowOpInterface
from shardy_py.ir.types import TensorType
from shardy_py.plugins import Registry


def assert_data_flow(op: Op, *, registry: Registry | None = None) -> None:
    """Assert that the methods of an op's data flow say the same of every edge.

    Each owner is a target of its own edge; each source and each target of an edge leads back to its owner; sources are
    operands of the op or of terminators in its regions, targets its results and arguments of its regions; nothing is in
    two edges; and the values of an edge have one rank.

    Args:
        op: An op with its regions, as `shardy_py.ir.Builder` makes it.
        registry: Who knows the op; by default the installed plugins.

    Raises:
        AssertionError: something does not fit; the message names the edge, the value and the method.
        OptionError: the op has no data flow.
    """
    semantics = registry or Registry.from_entry_points(skip_broken=True)
    data_flow = semantics.get_data_flow(op)
    if data_flow is None:
        raise OptionError(Diagnostic("no-data-flow", "the op has no data-flow edges to check", op=op.name))
    problems = list(_problems(op, data_flow))
    if problems:
        raise AssertionError(f"the data flow of '{op.name}' does not fit together\n  " + "\n  ".join(problems))


def _problems(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[str]:
    owners = [*data_flow.get_block_argument_edge_owners(op), *data_flow.get_op_result_edge_owners(op)]
    seen: dict[object, str] = {}
    for owner in owners:
        edge = f"the edge of {_value(op, owner)}"
        for source in data_flow.get_edge_sources(op, owner):
            yield from _source_problems(op, data_flow, owner, source, edge)
            yield from _second_edge(seen, (source.op.id, source.number), _source(op, source), edge)
        for target in (owner, *data_flow.get_non_edge_owner_targets(op, owner)):
            yield from _target_problems(op, data_flow, owner, target, edge)
            yield from _second_edge(seen, target.id, _value(op, target), edge)
        if not data_flow.get_edge_sources(op, owner):
            yield f"{edge} has no source: get_edge_sources"


def _source_problems(
    op: Op, data_flow: ShardableDataFlowOpInterface, owner: Value, source: OpOperand, edge: str
) -> Iterator[str]:
    if source.op is not op and (source.op.parent_op is not op or source.op.next is not None):
        yield f"{edge}: {source.op.name} is neither the op nor a terminator in its regions: get_edge_sources"
        return
    if not 0 <= source.number < len(source.op.operands):
        yield f"{edge}: {source.op.name} has no operand {source.number}: get_edge_sources"
        return
    found = data_flow.get_edge_owner_from_source(op, source)
    if found is not owner:
        yield f"{edge}: {_source(op, source)} leads to {_value(op, found)}: get_edge_owner_from_source"
    if _rank(source.value) != _rank(owner):
        yield f"{edge}: {_source(op, source)} is a {source.value.type}, not a {owner.type}: get_edge_sources"


def _target_problems(
    op: Op, data_flow: ShardableDataFlowOpInterface, owner: Value, target: Value, edge: str
) -> Iterator[str]:
    method = "get_non_edge_owner_targets" if target is not owner else "the owners"
    if target.owning_op is not op:
        yield f"{edge}: {_value(op, target)} is neither a result nor an argument of a region: {method}"
        return
    found = data_flow.get_edge_owner_from_target(op, target)
    if found is not owner:
        yield f"{edge}: {_value(op, target)} leads to {_value(op, found)}: get_edge_owner_from_target"
    if _rank(target) != _rank(owner):
        yield f"{edge}: {_value(op, target)} is a {target.type}, not a {owner.type}: {method}"


def _second_edge(seen: dict[object, str], key: object, what: str, edge: str) -> Iterator[str]:
    other = seen.setdefault(key, edge)
    if other != edge:
        yield f"{what} is in {other} and in {edge}"


def _rank(value: Value) -> int | None:
    return value.type.rank if isinstance(value.type, TensorType) else None


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
