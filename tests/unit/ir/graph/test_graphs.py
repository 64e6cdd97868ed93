"""The call graph with its orders, and the def-use graph of networkx."""

import networkx as nx
import pytest

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.ir import Builder, call_graph, callees_first, callers_first, tensor, to_networkx
from shardy_py.sharding.mesh import Mesh

T = tensor(8)


def program_of(**calls):
    """Return a program of functions that call the functions listed."""
    b = Builder()
    for name, callees in calls.items():
        with b.function(name, [T]) as (x,):
            for callee in callees:
                x = b.call(callee, [x], [T])
            b.return_(x)
    return b.program


def test_every_call_is_an_edge():
    """Two calls of one function are two edges; calls inside regions count."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        first = b.call("f", [x], [T])
        with b.region_op("toy.loop", [x]) as loop, b.region(loop):
            b.call("f", [x], [T])
        b.return_(first)
    with b.function("f", [T]) as (x,):
        b.return_(x)
    graph = call_graph(b.program)
    assert list(graph.edges(keys=False)) == [("main", "f"), ("main", "f")]
    assert graph.edges["main", "f", 0]["call"] is first.owner
    assert graph.nodes["f"]["op"] is b.program.functions["f"]


def test_orders_respect_calls_and_otherwise_the_program():
    """Callees come first in one order, callers in the other; unrelated functions stay in program order."""
    program = program_of(z=["b", "a"], a=["c"], b=["c"], c=[], d=[])
    assert callees_first(program) == ["c", "a", "b", "z", "d"]
    assert callers_first(program) == ["z", "a", "b", "c", "d"]
    assert callers_first(program_of(b=[], a=[], c=[])) == ["b", "a", "c"]
    assert callees_first(program_of(b=[], a=[], c=[])) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("calls", "path"),
    [
        ({"f": ["f"]}, "@f -> @f"),
        ({"main": ["f"], "f": ["g"], "g": ["f"]}, "@f -> @g -> @f"),
    ],
)
def test_recursion_is_an_error_that_shows_the_circle(calls, path):
    """Functions that call each other in a circle cannot be ordered."""
    with pytest.raises(UnsupportedError, match=path) as error:
        callees_first(program_of(**calls))
    assert error.value.diagnostics[0].code == "recursion"


def test_a_call_of_nothing_is_an_error():
    """All calls of functions that do not exist are named."""
    with pytest.raises(VerificationError) as error:
        call_graph(program_of(main=["f", "g"]))
    assert [item.message for item in error.value.diagnostics] == [
        "there is no function @f",
        "there is no function @g",
    ]


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
