"""The def-use graph of a program as a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(program: Program) -> nx.MultiDiGraph:
    """Return the def-use graph of a program.

    Nodes are ``("op", id)`` and ``("value", id)``. Every node has ``kind``; an op node also ``name``, ``location`` and
    ``parent`` (the node of the op around it, or None), a value node ``type``, ``shape`` (None unless it is static),
    ``sharding`` (a `TensorSharding` or None) and ``index``. Edges go from an op to its results, from a value to the
    ops that use it with the operand ``number``, and from an op to the arguments of its regions, in program order; each
    has a ``role``: ``result``, ``operand`` or ``argument``.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for op in program.walk():
        _add_op(graph, program, op)
    for op in program.walk():
        for number, value in enumerate(op.operands):
            graph.add_edge(("value", value.id), ("op", op.id), role="operand", number=number)
    return graph


def _add_op(graph: nx.MultiDiGraph, program: Program, op: Op) -> None:
    node = ("op", op.id)
    parent = op.parent_op
    graph.add_node(node, kind="op", name=op.name, location=op.location, parent=("op", parent.id) if parent else None)
    for value in op.results:
        _add_value(graph, program, value)
        graph.add_edge(node, ("value", value.id), role="result", number=value.index)
    for region in op.regions:
        for block in region.blocks:
            for value in block.arguments:
                _add_value(graph, program, value)
                graph.add_edge(node, ("value", value.id), role="argument", number=value.index)


def _add_value(graph: nx.MultiDiGraph, program: Program, value: Value) -> None:
    graph.add_node(
        ("value", value.id),
        kind="value",
        type=str(value.type),
        shape=static_shape(value.type),
        sharding=program.shardings.get(value.id),
        index=value.index,
    )
