"""Known layouts of the arguments: which placements each lets an argument have, from the factors of sharding rules.

Parameters and data are told apart as in `roles`. A layout says where parameters are sharded; data, and all tensors
inside, are as is best for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardy_py.plans.graph import Placement, PlanGraph, PlanNode
from shardy_py.plans.model import Allowed
from shardy_py.plans.prices import Prices
from shardy_py.plans.roles import expert_dims, parameters_of


def known_layouts(graph: PlanGraph, tied: Mapping[int, int], prices: Prices) -> Iterator[tuple[str, str, Allowed]]:
    """Yield the name of each layout, the roles of its axes, and the placements that it allows.

    Args:
        graph: The graph of the program.
        tied: The results that have the placement of an argument: result number to node.
        prices: The prices, with the axes of the mesh.
    """
    parameters, names = parameters_of(graph, tied), [name for name, _ in prices.axes]
    if not parameters or len(parameters) == sum(node.op is None for node in graph.nodes):
        return
    yield "data parallel", "", _parameters(parameters, lambda _, placement: not any(map(_is_used, placement)))
    yield "fully sharded", "", _parameters(parameters, lambda _, placement: all(map(_is_used, placement)))
    for axis, name in enumerate(names):
        rest = ", ".join(other for other in names if other != name)
        data = f", data over {rest}" if rest else ""
        yield "tensor parallel", f"tensor over {name}{data}", _tensor(parameters, axis, is_sharded=False)
        if rest:
            description = f"tensor over {name}, sharded over {rest}"
            yield "tensor parallel and fully sharded", description, _tensor(parameters, axis, is_sharded=True)
    experts = {number: dims for number in parameters if (dims := expert_dims(graph, graph.nodes[number]))}
    if experts:
        for axis, name in enumerate(names):
            yield "expert parallel", f"experts over {name}", _expert(parameters, experts, {axis})
        if len(names) > 1:
            yield "expert parallel", "experts over all axes", _expert(parameters, experts, set(range(len(names))))


def _is_used(dim: int | None) -> bool:
    return dim is not None


def _parameters(parameters: set[int], allowed: Allowed) -> Allowed:
    """Return what allows data everything, and parameters what a function allows."""
    return lambda node, placement: node.number not in parameters or allowed(node, placement)


def _tensor(parameters: set[int], axis: int, *, is_sharded: bool) -> Allowed:
    """Return what has matrices sharded over one axis, and over the others if wanted; data is whole along it."""

    def allowed(node: PlanNode, placement: Placement) -> bool:
        rest = [dim for other, dim in enumerate(placement) if other != axis]
        if node.number not in parameters:
            return placement[axis] is None
        return _is_used(placement[axis]) and all(_is_used(dim) == is_sharded for dim in rest)

    return allowed


def _expert(parameters: set[int], experts: Mapping[int, set[int]], axes: set[int]) -> Allowed:
    """Return what has the experts of parameters along some axes, and all other parameters whole."""

    def allowed(node: PlanNode, placement: Placement) -> bool:
        dims = experts.get(node.number, set())
        return all(dim in dims if dims and axis in axes else dim is None for axis, dim in enumerate(placement))

    return _parameters(parameters, allowed)
