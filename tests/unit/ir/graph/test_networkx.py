"""The def-use graph."""

import networkx as nx

from shardy_py.ir import Builder, tensor, to_networkx
from shardy_py.sharding.mesh import Mesh


def example():
    """Return a program with a nested op, and its values."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(8, None)]) as (x,):
        y = b.op("toy.f", [x, x], [tensor(8)])
        b.shard(y, '[{"a"}]')
        with b.region_op("toy.loop", [y], [tensor(8)]) as loop, b.region(loop, [tensor(8)]) as (argument,):
            b.op("toy.yield", [argument])
        b.return_(loop.result)
    return b.program, x, y, loop, argument


def test_nodes_are_ops_and_values_with_their_facts():
    """Names, types, shapes and shardings are node attributes."""
    program, x, y, loop, _ = example()
    nodes = to_networkx(program).nodes
    assert nodes["op", y.owner.id] == {
        "kind": "op",
        "name": "toy.f",
        "location": "",
        "parent": ("op", x.owner.parent_op.id),
    }
    assert nodes["value", y.id]["sharding"] is program.sharding(y)
    assert nodes["value", y.id]["shape"] == (8,)
    assert nodes["value", x.id]["shape"] is None
    assert nodes["value", x.id]["sharding"] is None
    assert nodes["op", program.functions["main"].id]["parent"] is None
    assert nodes["op", loop.id]["name"] == "toy.loop"


def test_edges_are_definitions_and_uses():
    """Every use is an edge of its own with the operand number; data flows along paths."""
    program, x, y, loop, argument = example()
    graph = to_networkx(program)
    uses = graph.get_edge_data(("value", x.id), ("op", y.owner.id))
    assert [data["number"] for data in uses.values()] == [0, 1]
    assert graph.get_edge_data(("op", loop.id), ("value", argument.id))[0]["role"] == "argument"
    assert nx.has_path(graph, ("value", x.id), ("value", loop.result.id))
    assert nx.is_directed_acyclic_graph(graph)
    operands = sum(len(op.operands) for op in program.walk())
    assert sum(data["role"] == "operand" for *_, data in graph.edges(data=True)) == operands
