"""The def-use graph with shardings as a file: GraphML, or JSON in the node-link form of networkx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, OptionError

if TYPE_CHECKING:
    import networkx as nx

SUFFIXES = (".graphml", ".json")


def graph_text(graph: nx.MultiDiGraph, file: str) -> str:
    """Return a graph as text, in the format that the name of a file asks for.

    Nodes are called ``op 3`` and ``value 5``. Attributes are texts and numbers, without those that have no value;
    shardings are as Shardy writes them, shapes as ``8x16``.

    Args:
        graph: The graph, see `Result.to_networkx`.
        file: The name of the file.

    Raises:
        OptionError: the name ends in something else.
    """
    suffix = graph_suffix(file)
    return _graphml(graph) if suffix == ".graphml" else _json(graph)


def graph_suffix(file: str) -> str:
    """Return the suffix of a file for a graph.

    Raises:
        OptionError: it is of no known format.
    """
    suffix_of_file = next((suffix for suffix in SUFFIXES if file.lower().endswith(suffix)), None)
    if suffix_of_file is None:
        message = f"{file}: no format of graphs has this suffix"
        raise OptionError(Diagnostic("unknown-format", message, hint=f"end the name in {' or '.join(SUFFIXES)}"))
    return suffix_of_file


def _graphml(graph: nx.MultiDiGraph) -> str:
    import networkx as nx

    plain = nx.MultiDiGraph()
    plain.add_nodes_from(_nodes(graph))
    plain.add_edges_from((_name(source), _name(target), data) for source, target, data in graph.edges(data=True))
    return "\n".join(nx.generate_graphml(plain)) + "\n"


def _json(graph: nx.MultiDiGraph) -> str:
    edges = [
        {"source": _name(source), "target": _name(target), "key": key, **data}
        for source, target, key, data in graph.edges(keys=True, data=True)
    ]
    nodes = [{"id": name, **data} for name, data in _nodes(graph)]
    data = {"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "edges": edges}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _nodes(graph: nx.MultiDiGraph) -> Iterator[tuple[str, dict[str, Any]]]:
    for node, data in graph.nodes(data=True):
        yield _name(node), {key: _plain(key, value) for key, value in data.items() if value not in (None, "")}


def _plain(key: str, value: Any) -> str | int:
    if key == "parent":
        return _name(value)
    if key == "shape":
        return "x".join(map(str, value))
    return value if isinstance(value, int) else str(value)


def _name(node: tuple[str, int]) -> str:
    return f"{node[0]} {node[1]}"
