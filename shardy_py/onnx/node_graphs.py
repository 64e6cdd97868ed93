"""Graphs in the attributes of nodes, and the tensors that these read from around them."""

from __future__ import annotations

import onnx
from onnx import GraphProto, NodeProto


def node_graph(node: NodeProto, name: str) -> GraphProto:
    """Return the graph that is an attribute of a node."""
    return next(item.g for item in node.attribute if item.name == name)


def node_graphs(node: NodeProto) -> list[GraphProto]:
    """Return the graphs in the attributes of a node."""
    return [
        graph
        for item in node.attribute
        for graph in ([item.g] if item.type == onnx.AttributeProto.GRAPH else item.graphs)
    ]


def captured(node: NodeProto) -> list[str]:
    """Return the names that the graphs of a node take from around it, in order."""
    return list(dict.fromkeys(name for graph in node_graphs(node) for name in outer_names(graph)))


def outer_names(graph: GraphProto) -> list[str]:
    """Return the names that a graph takes from around it, in order."""
    names: dict[str, None] = {}
    inner = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        names |= dict.fromkeys(name for name in (*node.input, *captured(node)) if name and name not in inner)
        inner.update(node.output)
    names |= dict.fromkeys(info.name for info in graph.output if info.name not in inner)
    return list(names)


BODY_NAMES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}
"""The attributes of nodes that have graphs."""


def node_name(node: NodeProto) -> str:
    """Return what tells a node from the others of its graph: the name of its first output."""
    return next((str(name) for name in node.output if name), "")
