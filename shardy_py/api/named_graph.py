"""The def-use graph of a propagated program, with names and shardings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.api.summary import sharding_of
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.graphs import to_networkx
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_values
from shardy_py.ir.interfaces.ops import OpSemantics

if TYPE_CHECKING:
    import networkx as nx


def named_graph(program: Program, semantics: OpSemantics) -> nx.MultiDiGraph:
    """Return the graph; see `Result.to_networkx`."""
    graph = to_networkx(program)
    printed = frontend_of(program).printed_names(program)
    for value in all_values(program):
        sharding = sharding_of(program, value, semantics)
        graph.nodes["value", value.id].update(name=printed.get(value.id, ("",))[0], sharding=sharding)
    return graph
