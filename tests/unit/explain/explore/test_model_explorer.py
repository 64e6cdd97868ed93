"""Files for Model Explorer."""

import json

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.explain.explore.explore import explore
from shardy_py.explain.explore.model_explorer import model_explorer_files
from tests.unit.explain.explore.programs import TWO_LAYERS


def _files():
    return tuple(json.loads(text) for text in model_explorer_files(explore(SessionArguments(TWO_LAYERS)).data))


def test_graphs_have_the_form_that_model_explorer_reads():
    """All identifiers are strings, all edges lead from nodes and outputs that exist, namespaces are layers."""
    graph, _ = _files()
    assert set(graph) == {"label", "graphs"}
    (only,) = graph["graphs"]
    nodes = {node["id"]: node for node in only["nodes"]}
    assert len(nodes) == len(only["nodes"])
    for node in nodes.values():
        assert set(node) == {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata"}
        for attribute in (*node["attrs"], *(item for entry in node["outputsMetadata"] for item in entry["attrs"])):
            assert set(attribute) == {"key", "value"}
            assert all(isinstance(text, str) for text in attribute.values())
        for edge in node["incomingEdges"]:
            source = nodes[edge["sourceNodeId"]]
            assert edge["sourceNodeOutputId"] in {entry["id"] for entry in source["outputsMetadata"]}
    tanh = next(node for node in nodes.values() if node["label"] == "stablehlo.tanh")
    assert tanh["namespace"] == "@main/layer_0"


def test_node_data_are_the_bytes_sent_at_each_op():
    """Only ops with transfers have a number; it belongs to a node of the graph."""
    graph, data = _files()
    (results,) = [entry["results"] for entry in data.values()]
    labels = {node["id"]: node["label"] for node in graph["graphs"][0]["nodes"]}
    assert set(data) == {graph["graphs"][0]["id"]}
    assert [(labels[node], item["value"]) for node, item in results.items()] == [("stablehlo.dot_general", 512.0)]
