"""All-reduces that no compiler combines: each needs the result of the one before.

Of nodes along one path of data flow each depends on the one before, so that no two of their all-reduces become one:
there are at least as many latencies as nodes on it. All-reduces of different element types are never combined: there is
a path for each type. The other count of latencies, by bytes, is a bound of its own (see `prices`); both together would
count some twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from shardy_py.plans.graph import PlanGraph

_FLOATS = {"bf16", "f16", "f32"}


def serial_nodes(graph: PlanGraph, seconds: Mapping[int, float], *, is_widened: bool = False) -> set[int]:
    """Return the nodes along the paths with the longest latencies.

    Args:
        graph: The graph.
        seconds: Node to the latency that counts if it is on a path.
        is_widened: Whether small floating-point types are reduced as ``f32``.
    """
    types: dict[str, dict[int, float]] = {}
    for node, latency in seconds.items():
        element_type = graph.element_type(graph.nodes[node].results[0])
        name = "f32" if is_widened and element_type in _FLOATS else element_type
        types.setdefault(name, {})[node] = latency
    return {node for latencies in types.values() for node in _longest_path(graph, latencies)}


def _longest_path(graph: PlanGraph, latencies: Mapping[int, float]) -> list[int]:
    lengths: list[float] = []
    before: list[int | None] = []
    for node in graph.nodes:
        length, previous = 0.0, None
        for number in node.live:
            producer = graph.node_of[graph.views[node.operands[number]][0]]
            if lengths[producer] > length:
                length, previous = lengths[producer], producer
        lengths.append(length + latencies.get(node.number, 0.0))
        before.append(previous)
    node_number = max(range(len(lengths)), key=lambda number: (lengths[number], -number), default=None)
    path = []
    while node_number is not None:
        if latencies.get(node_number, -inf) > 0:
            path.append(node_number)
        node_number = before[node_number]
    return path
