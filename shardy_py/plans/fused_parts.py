"""The part of a kernel that is a node's alone: strict prices charge no more of it by the node's shards.

A kernel may have ops of other nodes fused into it. Where a plan reshards between them they are kernels of their own,
with other shards than the node has. So by the strict prices what a kernel reads and writes beyond the node's operands
and results is divided by all devices.
"""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.cost.estimates.values import OpCost
from shardy_py.plans.graph import PlanGraph, PlanNode


def part_of_node(graph: PlanGraph, node: PlanNode, kernel: OpCost, kernels: Iterable[int]) -> float:
    """Return the part of a kernel that reads a node's operands and writes its results.

    Operands that followers of the same node make, in the same kernel, count as what these read.

    Args:
        graph: The graph.
        node: The node.
        kernel: The kernel.
        kernels: The ids of all ops that have a kernel.
    """
    slots: dict[int, float] = {}
    stack, head, seen = [node], graph.head(node.number), {node.number}
    while stack:
        reader = stack.pop()
        for number in reader.live:
            slot = reader.operands[number]
            root = graph.views[slot][0]
            producer = graph.nodes[graph.node_of[root]]
            is_fused = producer.op is not None and producer.op.id not in kernels
            if is_fused and producer.number != head and graph.head(producer.number) == head:
                if producer.number not in seen:
                    seen.add(producer.number)
                    stack.append(producer)
            else:
                slots[slot] = max(graph.bytes(root), graph.bytes(slot))
    written = sum(graph.bytes(slot) for slot in node.results if slot >= 0)
    return part_of_bytes(kernel, sum(slots.values()) + written)


def part_of_bytes(kernel: OpCost, size: float) -> float:
    """Return the part of what a kernel reads and writes that some bytes of each run are, at most all."""
    return min(1.0, size * kernel.runs / kernel.bytes) if kernel.bytes else 1.0
