"""What edges know goes back to the ops they belong to."""

import pytest

from shardy_py.ir import Builder, OpaqueType, RawAttribute, tensor, verify
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.sink_data_flow_edges import SinkDataFlowEdgesPass
from shardy_py.transforms.pass_options import make_pass

T = tensor(8, 8)
TOKEN = OpaqueType("!toy.token")


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


def example(*, edges, types=(T, T)):
    """Return a builder, a named computation, and the edges on its results (by number, with attributes)."""
    b = Builder(mesh=Mesh.of(a=2))
    edge_ops = {}
    with b.function("main", types) as arguments:
        with b.region_op("sdy.named_computation", arguments, types) as op, b.region(op, types) as inner:
            b.op("sdy.return", inner)
        results = list(op.results)
        for number, attributes in edges.items():
            edge_ops[number] = results[number] = b.op("sdy.data_flow_edge", [op.results[number]], [T], attributes)
        b.return_(*results)
    return b, op, edge_ops


def table(b, op):
    """Return the shardings of the results."""
    return [str(b.program.sharding(value)) for value in op.results]


def test_owners_take_over_the_shardings_of_their_edges(context):
    """The edge's sharding wins over the owner's, and the edge is gone from graph and table."""
    b, op, edges = example(edges={0: {}, 1: {}})
    b.shard(op.results[0], '[{}, {"a"}]')
    b.shard(edges[0], '[{"a"}, {}]')
    b.shard(edges[1], '[{"a"}, {?}]')
    SinkDataFlowEdgesPass().run(b.program, context)
    assert table(b, op) == ['<@mesh, [{"a"}, {}]>', '<@mesh, [{"a"}, {?}]>']
    assert "sdy.data_flow_edge" not in [item.name for item in b.program.walk()]
    verify(b.program)


def test_one_sharding_opens_the_others(context):
    """An op holds the shardings of all owners, so an edge without one leaves a fully open one, tokens rank zero."""
    b, op, edges = example(edges={1: {}}, types=(T, T, TOKEN))
    b.shard(op.results[0], '[{"a"}, {}]')
    b.shard(edges[1], '[{"a"}, {}]')
    SinkDataFlowEdgesPass().run(b.program, context)
    assert table(b, op) == ["<@mesh, [{?}, {?}]>", '<@mesh, [{"a"}, {}]>', "<@mesh, []>"]


def test_without_any_sharding_nothing_is_set(context):
    """Edges that were never reached leave the op as it was."""
    b, op, _ = example(edges={0: {}, 1: {}})
    b.shard(op.results[0], '[{"a"}, {}]')
    SinkDataFlowEdgesPass().run(b.program, context)
    assert table(b, op) == ['<@mesh, [{"a"}, {}]>', "None"]


def test_debug_information_is_collected_on_the_op_when_asked(context):
    """The options bring origins and propagation edges to the op, edges without any left out."""
    origins, step = {"a": "self"}, RawAttribute("#sdy.propagation_edges<[{step-0 = [...]}]>")
    attributes = {"sdy.sharding_origins": origins, "sdy.propagation_edges": step}
    empty = {"sdy.propagation_edges": RawAttribute("#sdy.propagation_edges<[]>")}
    b, op, _ = example(edges={0: attributes, 1: empty})
    options = {"sink-debug-sharding-origins": "true", "sink-debug-propagation-edge-sharding": "true"}
    make_pass(SinkDataFlowEdgesPass, options).run(b.program, context)
    assert op.attributes == {
        "sdy.block_arg_sharding_origins": (),
        "sdy.block_arg_propagation_edges": (),
        "sdy.result_sharding_origins": (origins,),
        "sdy.result_propagation_edges": (step,),
    }


def test_debug_information_is_dropped_by_default(context):
    """Without the options the op gets no new attribute."""
    b, op, _ = example(edges={0: {"sdy.sharding_origins": {"a": "self"}}})
    SinkDataFlowEdgesPass().run(b.program, context)
    assert op.attributes == {}
