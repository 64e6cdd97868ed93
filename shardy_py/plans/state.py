"""The results of a program that are the next state of an argument, as those of a training step.

A result whose place is that of a donated argument is its next state; else one that elementwise ops make of an argument
of its type. Gradients are not made of their parameters: where several results are left, they go by their types.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.api.main_function import arguments_of
from shardy_py.cost.estimates.flatten import DONATED
from shardy_py.plans.graph import PlanGraph, PlanNode

_ALIAS = DONATED[0]


def next_states(graph: PlanGraph) -> dict[int, int]:
    """Return the number of a result to the node of the argument whose next state it is."""
    results = {number: value for number, (value, _) in enumerate(graph.returned()) if _is_full(graph, value)}
    arguments = [node for node in graph.nodes if node.op is None]
    states = _donated(graph, results, arguments)
    for number, value in results.items():
        if number not in states:
            sources = _elementwise_sources(graph, value)
            _add(graph, states, number, value, (node for node in arguments if node.number in sources))
    rest = {number: value for number, value in results.items() if number not in states}
    if len(rest) > 1:
        for number, value in rest.items():
            _add(graph, states, number, value, arguments)
    return dict(sorted(states.items()))


def _add(graph: PlanGraph, states: dict[int, int], number: int, value: int, arguments: Iterable[PlanNode]) -> None:
    """Add the first argument of a result's type that has no next state yet."""
    assigned = set(states.values())
    for node in arguments:
        if node.number not in assigned and graph.type_text(node.results[0]) == graph.type_text(value):
            states[number] = node.number
            return


def _is_full(graph: PlanGraph, value: int) -> bool:
    """Return whether a returned value is that of an op with a choice, with its dimensions in order."""
    root, dims = graph.views.get(value, (-1, ()))
    is_whole = bool(dims) and dims == tuple(range(len(graph.shape(value)))) and len(graph.shape(root)) == len(dims)
    return is_whole and graph.nodes[graph.node_of[root]].op is not None


def _donated(graph: PlanGraph, results: dict[int, int], arguments: list[PlanNode]) -> dict[int, int]:
    main, slot_of = graph.session.main, graph.session.problem.slot_of
    nodes = {node.results[0]: node for node in arguments}
    states: dict[int, int] = {}
    for value, attributes in zip(arguments_of(main), main.attributes.get("arg_attrs") or (), strict=False):
        node, number = nodes.get(slot_of.get(value.id, -1)), attributes.get(_ALIAS)
        if node is None or number not in results:
            continue
        if graph.type_text(node.results[0]) == graph.type_text(results[number]):
            states.setdefault(number, node.number)
    return states


def donated_results(graph: PlanGraph) -> set[int]:
    """Return the slots of results that lie in the memory of a donated argument."""
    results = {number: value for number, (value, _) in enumerate(graph.returned())}
    every = graph.session.main.attributes.get("arg_attrs") or ()
    return {results[number] for attributes in every if (number := attributes.get(_ALIAS)) in results}


def _elementwise_sources(graph: PlanGraph, value: int) -> set[int]:
    """Return the arguments of which elementwise ops make a value, dimension by dimension."""
    arguments: set[int] = set()
    stack, seen = [graph.views[value][0]], set()
    while stack:
        root = stack.pop()
        if root in seen:
            continue
        seen.add(root)
        node = graph.nodes[graph.node_of[root]]
        if node.op is None:
            arguments.add(node.number)
        elif node.is_elementwise:
            for number in node.live:
                source, dims = graph.views[node.operands[number]]
                if dims == tuple(range(len(graph.shape(source)))):
                    stack.append(source)
    return arguments
