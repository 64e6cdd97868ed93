"""Data-flow edges get ops of their own, and lose them again."""

import pytest

from shardy_py.ir import Builder, OpaqueType, tensor, verify
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.sink_data_flow_edges import SinkDataFlowEdgesPass
from shardy_py.transforms.prepare.add_data_flow_edges import AddDataFlowEdgesPass

T = tensor(8)
TOKEN = OpaqueType("!toy.token")


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


@pytest.fixture
def computation():
    """Return a builder and a named computation with two results, of which a token is one."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, TOKEN, T]) as (x, token, y):
        operands = [x, token, y]
        types = [T, TOKEN, T]
        with b.region_op("sdy.named_computation", operands, types) as op, b.region(op, types) as arguments:
            b.op("toy.use", [arguments[2], arguments[0], arguments[0]])
            b.op("sdy.return", arguments)
        b.op("toy.first", [op.results[0]])
        b.op("toy.second", [op.results[0]])
        b.return_(*op.results)
    b.shard(op.results[0], '[{"a"}]')
    b.shard(op.regions[0].block.arguments[2], "[{?}]")
    return b, op


def names(block):
    """Return the op names of a block."""
    return [op.name for op in block.ops]


def test_each_owner_gets_an_edge_with_its_sharding(computation, context):
    """Edges stand after their owners, in their order; tokens get none; shardings come along."""
    b, op = computation
    AddDataFlowEdgesPass().run(b.program, context)
    verify(b.program)
    body = op.regions[0].block
    assert names(body) == ["sdy.data_flow_edge", "sdy.data_flow_edge", "toy.use", "sdy.return"]
    edges = [edge for edge in b.program.walk() if edge.name == "sdy.data_flow_edge"]
    owners = [edge.operands[0] for edge in edges]
    assert owners == [body.arguments[0], body.arguments[2], op.results[0], op.results[2]]
    assert all(owner.has_one_use for owner in owners)
    assert op.next is edges[2]
    assert edges[2].next is edges[3]
    shardings = [b.program.sharding(edge.result) for edge in edges]
    assert [sharding and str(sharding) for sharding in shardings] == [None, "<@mesh, [{?}]>", '<@mesh, [{"a"}]>', None]


def test_uses_of_the_owner_move_in_reverse(computation, context):
    """The users of an edge are in the order in which MLIR moves them: newest first."""
    b, op = computation
    users = [user.name for user, _ in op.results[0].uses]
    AddDataFlowEdgesPass().run(b.program, context)
    edge = op.results[0].uses[0][0]
    assert [user.name for user, _ in edge.result.uses] == list(reversed(users))


def test_adding_twice_adds_once(computation, context):
    """An owner that has an edge keeps it."""
    b, _ = computation
    AddDataFlowEdgesPass().run(b.program, context)
    once = [op.id for op in b.program.walk()]
    AddDataFlowEdgesPass().run(b.program, context)
    assert [op.id for op in b.program.walk()] == once


def test_sinking_undoes_adding(computation, context):
    """The same ops with the same operands and uses are left; only new shardings stay."""
    b, op = computation
    before = [(item.id, [value.id for value in item.operands]) for item in b.program.walk()]
    uses = [(user.name, number) for user, number in op.results[0].uses]
    AddDataFlowEdgesPass().run(b.program, context)
    SinkDataFlowEdgesPass().run(b.program, context)
    verify(b.program)
    assert [(item.id, [value.id for value in item.operands]) for item in b.program.walk()] == before
    assert [(user.name, number) for user, number in op.results[0].uses] == uses
