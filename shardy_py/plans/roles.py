"""Roles of the axes of the mesh in a plan, from the factors of sharding rules alone.

A parameter is an argument whose placement a result has, as in a training step; where no result has one, it is an
argument that every product takes behind another operand. A parameter that its users gather is fully sharded; one whose
axis is on a factor that is summed is sharded by rows, on a batching factor by experts, on another factor by columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod

from shardy_py.cost.advice.layouts import layer_pattern
from shardy_py.plans.graph import NodeUse, PlanGraph, PlanNode
from shardy_py.plans.model import need
from shardy_py.plans.strategies import through
from shardy_py.plans.write import PlanWriter

Roles = dict[str, dict[str, tuple[str, ...]]]
"""Axis to role to the patterns of the arguments' names that have it, the largest first."""

FULLY_SHARDED, ROWS, COLUMNS, EXPERT, BATCH, SEQUENCE, SUMMED = (
    "fully sharded",
    "tensor (rows)",
    "tensor (columns)",
    "expert",
    "batch",
    "sequence",
    "split along a sum",
)
_TENSOR = {ROWS, COLUMNS}


def axis_roles(writer: PlanWriter) -> Roles:
    """Return what each axis does with each argument."""
    graph, axes = writer.graph, writer.prices.axes
    parameters = parameters_of(graph, writer.tied)
    sizes: dict[str, dict[str, dict[str, float]]] = {name: defaultdict(lambda: defaultdict(float)) for name, _ in axes}
    for node in graph.nodes:
        if node.op is not None:
            continue
        pattern, size = layer_pattern(node.name), prod(graph.shape(node.results[0]))
        for axis, (name, _) in enumerate(axes):
            for role in set(_roles(writer, node, axis, is_parameter=node.number in parameters)):
                sizes[name][role][pattern] += size
    for axis, (name, _) in enumerate(axes):
        if sizes[name].keys() & _TENSOR and BATCH not in sizes[name] and _is_sequence(writer, axis, parameters):
            sizes[name][SEQUENCE]["between products"] = 0.0
    return {
        name: {
            role: tuple(sorted(patterns, key=lambda pattern: (-patterns[pattern], pattern)))
            for role, patterns in sorted(roles.items())
        }
        for name, roles in sizes.items()
    }


def _roles(writer: PlanWriter, argument: PlanNode, axis: int, *, is_parameter: bool) -> Iterator[str]:
    graph = writer.graph
    have = writer.out(argument.number)[axis]
    if is_parameter and have is None:
        return
    for use in graph.uses.get(argument.results[0], ()):
        user = graph.nodes[use.node]
        head = graph.head(use.node)
        if user.rule is None or head != use.node or (user.is_elementwise and is_parameter):
            continue
        strategy = writer.choice[head]
        needed_dim = through(need(user, use.operand, strategy, head), use.dims)[axis]
        factor = strategy.factors[axis]
        if needed_dim is None or factor is None:
            if is_parameter:
                yield FULLY_SHARDED
        elif not is_parameter:
            yield SUMMED if factor in user.rule.reduction_factors else BATCH
        elif factor in user.rule.reduction_factors:
            yield ROWS
        else:
            yield EXPERT if _is_batching(user, factor) else COLUMNS


def expert_dims(graph: PlanGraph, argument: PlanNode) -> set[int]:
    """Return the dimensions of an argument that products only go along, as those of experts."""
    dims: set[int] = set()
    for use in graph.uses.get(argument.results[0], ()):
        user = graph.nodes[use.node]
        if user.rule is not None and _is_product(user):
            factors = zip(use.dims, user.rule.operand_mappings[use.operand], strict=True)
            dims.update(dim for dim, inside in factors if dim is not None and inside and _is_batching(user, inside[0]))
    return dims


def _is_batching(node: PlanNode, factor: int) -> bool:
    """Return whether all operands that depend on arguments, and the result, have a factor."""
    assert node.rule is not None, "only asked of ops"
    mappings = [node.rule.operand_mappings[number] for number in node.live]
    mappings.append(node.rule.result_mappings[0])
    return len(mappings) > 2 and all(any(factor in dim for dim in mapping) for mapping in mappings)


def parameters_of(graph: PlanGraph, tied: Mapping[int, int]) -> set[int]:
    """Return the arguments that are parameters, given the results that have the placement of an argument."""
    if tied:
        return set(tied.values())
    arguments = [node for node in graph.nodes if node.op is None]
    return {node.number for node in arguments if _is_behind(graph, graph.uses.get(node.results[0], ()))}


def _is_behind(graph: PlanGraph, uses: list[NodeUse] | tuple[NodeUse, ...]) -> bool:
    products = [use for use in uses if _is_product(graph.nodes[use.node])]
    return bool(products) and all(use.operand != graph.nodes[use.node].live[0] for use in products)


def _is_product(node: PlanNode) -> bool:
    return node.rule is not None and len(node.live) > 1 and bool(node.rule.reduction_factors)


def _is_sequence(writer: PlanWriter, axis: int, parameters: set[int]) -> bool:
    """Return whether an axis shards, somewhere between products, a dimension that comes from data alone."""
    graph = writer.graph
    of_parameters: dict[int, set[int]] = {}
    for node in graph.nodes:
        rank = len(graph.shape(node.results[0]))
        if node.op is None or node.rule is None:
            of_parameters[node.results[0]] = set(range(rank)) if node.number in parameters else set()
            continue
        factors: set[int] = set()
        for number in node.live:
            root, dims = graph.views[node.operands[number]]
            mapping = node.rule.operand_mappings[number]
            for dim, inside in zip(dims, mapping, strict=True):
                if dim in of_parameters.get(root, set()):
                    factors.update(inside)
        for slot, mapping in zip(node.results, node.rule.result_mappings, strict=True):
            if slot >= 0:
                of_parameters[slot] = {dim for dim, inside in enumerate(mapping) if factors.intersection(inside)}
        dim = writer.out(node.number)[axis]
        if dim is not None and rank > 1 and dim not in of_parameters[node.results[0]] and not _is_product(node):
            return True
    return False
