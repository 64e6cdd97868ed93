"""Minimum cuts, against all cuts of small networks."""

from __future__ import annotations

from itertools import product
from random import Random

from shardy_py.local.communication.minimum_cut import FlowNetwork

Edges = list[tuple[int, int, float]]


def cost_of(sides: tuple[bool, ...], at_source: list[float], at_sink: list[float], edges: Edges) -> float:
    """Return what a cut costs; True is the side of the sink."""
    nodes = sum(sink if side else source for side, source, sink in zip(sides, at_source, at_sink, strict=True))
    return nodes + sum(cost for first, second, cost in edges if not sides[first] and sides[second])


def test_the_cut_is_the_cheapest_of_all() -> None:
    """Also with costs on both sides of a node, negative ones, and edges in both directions; of equals the smallest."""
    random = Random(0)
    for _ in range(200):
        count = random.randint(1, 6)
        at_source = [random.choice((0.0, 0.0, float(random.randint(-5, 9)))) for _ in range(count)]
        at_sink = [random.choice((0.0, 0.0, float(random.randint(-5, 9)))) for _ in range(count)]
        pairs = [(first, second) for first in range(count) for second in range(count) if first != second]
        edges = [(first, second, float(random.randint(1, 9))) for first, second in pairs if random.random() < 0.4]
        network = FlowNetwork()
        nodes = [network.add_node(*costs) for costs in zip(at_source, at_sink, strict=True)]
        for first, second, cost in edges:
            network.add_edge(nodes[first], nodes[second], cost)
        smallest_side = network.sink_side()
        actual = cost_of(tuple(node in smallest_side for node in nodes), at_source, at_sink, edges)
        costs = {cut: cost_of(cut, at_source, at_sink, edges) for cut in product((False, True), repeat=count)}
        assert actual == min(costs.values())
        cheapest = [{nodes[number] for number in range(count) if cut[number]} for cut in costs if costs[cut] == actual]
        assert smallest_side == set.intersection(*cheapest)


def test_equal_cuts_leave_nodes_with_the_source() -> None:
    """A node goes to the sink only where that is cheaper."""
    network = FlowNetwork()
    node = network.add_node(3.0, 3.0)
    assert node not in network.sink_side()
