"""The def-use graph of a result, and its files."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")
import networkx as nx

import shardy_py as sdy
from shardy_py.errors import OptionError
from shardy_py.report.graph import graph_text
from shardy_py.sharding.tensor import TensorSharding
from tests.unit.cost.programs import LAYER
from tests.unit.explain.test_diff import LOOP


@pytest.mark.parametrize("text", [LAYER, LOOP], ids=["layer", "loop"])
def test_every_value_has_its_sharding_and_its_name(text: str) -> None:
    """The attributes of a value are what `Result.sharding` says of it; the printed names lead to its node.

    A name that several regions use stands for the first of them.
    """
    result = sdy.propagate(text)
    graph = result.to_networkx()
    values = {node: data for node, data in graph.nodes(data=True) if data["kind"] == "value"}
    assert any(data["sharding"] is not None for data in values.values())
    first: dict[str, int] = {}
    for (_, id_), data in values.items():
        assert data["type"] == str(result.value(data["name"]).type) or data["name"] in first
        first.setdefault(data["name"], id_)
    for name, id_ in first.items():
        assert graph.nodes["value", result.value(name).id]["sharding"] == result.sharding(name)
        assert graph.nodes["value", id_]["name"] == name


def test_block_arguments_of_loops_have_the_sharding_of_their_edge() -> None:
    """The carried value is sharded inside the loop as outside, although only the result carries the attribute."""
    result = sdy.propagate(LOOP)
    graph = result.to_networkx()
    loop = next(node for node, data in graph.nodes(data=True) if data["name"] == "stablehlo.while")
    inside = [graph.nodes[v]["sharding"] for _, v, data in graph.edges(loop, data=True) if data["role"] == "argument"]
    assert str(inside[1]) == str(result.sharding("%3#1")) == '<@mesh, [{"a"}]>'


def test_the_graph_survives_its_files() -> None:
    """Read back by networkx, both formats have the nodes, the edges and the shardings; the latter parse."""
    result = sdy.propagate(LAYER)
    graph = result.to_networkx()
    text = graph_text(graph, "x.graphml")
    read = nx.read_graphml(BytesIO(text.encode()))
    data = json.loads(graph_text(graph, "x.json"))
    assert len(read) == len(data["nodes"]) == len(graph)
    assert read.number_of_edges() == len(data["edges"]) == graph.number_of_edges()
    shardings = {f"value {id_}": str(actual) for (kind, id_), actual in graph.nodes(data="sharding") if actual}
    assert shardings
    assert {name: actual for name, actual in read.nodes(data="sharding") if actual} == shardings
    assert {node["id"]: node["sharding"] for node in data["nodes"] if "sharding" in node} == shardings
    assert all(
        isinstance(sdy.sharding.parse.parse_tensor_sharding(item), TensorSharding) for item in shardings.values()
    )
    assert graph_text(sdy.propagate(LAYER).to_networkx(), "x.graphml") == text


def test_unknown_formats_are_refused() -> None:
    """The suffix of the file says which format."""
    with pytest.raises(OptionError, match="no format of graphs"):
        graph_text(sdy.propagate(LAYER).to_networkx(), "x.dot")


def test_the_command_writes_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written with --graph; an unknown suffix is refused before anything is read."""
    testing: Any = pytest.importorskip("click.testing")
    from shardy_py.cli.app import shardy

    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(LAYER)
    done = testing.CliRunner().invoke(shardy, ["propagate", "in.mlir", "-q", "--graph", "graph.json"])
    assert done.exit_code == 0
    assert json.loads(Path("graph.json").read_text())["multigraph"]
    done = testing.CliRunner().invoke(shardy, ["propagate", "missing.mlir", "--graph", "graph.dot"])
    assert done.exit_code == 2
    assert "graph.dot" in done.stderr
