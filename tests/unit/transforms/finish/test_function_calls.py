"""What becomes of calls after propagation."""

import pytest

from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.export_named_computations import ExportNamedComputationsPass
from shardy_py.transforms.finish.insert_func_call_reshards import InsertFuncCallReshardsPass, PropagateToFuncResultsPass
from shardy_py.transforms.finish.sink_data_flow_edges import SinkFuncDataFlowEdgesPass
from shardy_py.transforms.finish.unflatten_call_graph import UnflattenCallGraphPass
from shardy_py.transforms.prepare.import_func_calls import ImportFuncCallsPass

T = tensor(8, 8)


@pytest.fixture(scope="module")
def context():
    """Return a context that knows the dialects sdy and func only."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


def nested():
    """Return a builder with a named computation inside another, with edges on the values of the outer one."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    with b.function("main", [T]) as (x,):
        attributes = {"name": "f", "execution_thread": "host"}
        with b.region_op("sdy.named_computation", [x], [T], attributes) as outer, b.region(outer, [T]) as (y,):
            edge = b.op("sdy.data_flow_edge", [y], [T])
            b.shard(edge, '[{"a"}, {}]')
            with (
                b.region_op("sdy.named_computation", [edge], [T], {"name": "main"}) as inner,
                b.region(inner, [T]) as (z,),
            ):
                b.op("sdy.return", [z])
            b.op("sdy.return", inner.results)
        edge = b.op("sdy.data_flow_edge", outer.results, [T])
        b.shard(edge, '[{}, {"b"}]')
        b.return_(edge)
    return b


def copies(*argument_shardings, origin="f"):
    """Return a builder whose main function calls one copy per sharding; None makes it call the copy before again."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    names = []
    for number, sharding in enumerate(argument_shardings):
        names.append(f"{origin}_{number}" if sharding is not None else names[-1])
    with b.function("main", [T]) as (x,):
        for name in names:
            x = b.call(name, [x], [T])
        b.return_(x)
    for name, sharding in zip(names, argument_shardings, strict=True):
        if sharding is not None:
            with b.function(name, [T]) as (x,):
                b.shard(x, sharding)
                b.return_(x)
            b.program.functions[name].attributes["sdy.original_func_name"] = origin
    return b


def callees(b):
    """Return the callees of all calls."""
    return [callee_of(op) for op in b.program.walk() if op.name == "func.call"]


def test_named_computations_become_functions(context):
    """Inner ones come first, names that are taken get a number, and every function knows its name before that."""
    b = nested()
    ExportNamedComputationsPass().run(b.program, context)
    assert list(b.program.functions) == ["main", "main_0", "f"]
    assert callees(b) == ["f", "main_0"]
    inner, outer = (b.program.functions[name].attributes for name in ("main_0", "f"))
    assert inner["sdy.original_func_name"] == "main"
    assert str(inner["function_type"]) == "(tensor<8x8xf32>) -> tensor<8x8xf32>"
    assert (outer["sym_visibility"], outer["execution_thread"]) == ("private", "host")
    assert [op.name for op in b.program.functions["f"].walk()] == ["func.func", "func.call", "func.return"]
    verify(b.program)


def test_calls_and_functions_come_back(context):
    """What was imported is exported as the very ops it was, with what a new call and a new function would have."""
    b = copies('[{"a"}, {}]')
    function = b.program.functions["f_0"]
    call = next(op for op in b.program.walk() if op.name == "func.call")
    end = function.regions[0].block.terminator
    function.attributes["arg_attrs"] = ({"toy.note": 1},)
    call.attributes["toy.note"] = 2
    ImportFuncCallsPass().run(b.program, context)
    assert "func.call" not in {op.name for op in b.program.walk()}
    ExportNamedComputationsPass().run(b.program, context)
    assert b.program.functions == {"main": b.program.functions["main"], "f": function}
    assert function.regions[0].block.terminator is end
    assert sorted(function.attributes) == ["function_type", "sdy.original_func_name", "sym_name", "sym_visibility"]
    assert [op for op in b.program.walk() if op.name == "func.call"] == [call]
    assert call.attributes["toy.note"] == 2
    assert callees(b) == ["f"]
    verify(b.program)


def test_edges_of_named_computations_are_sunk(context):
    """The function's argument and the call's result take over the shardings of the edges, the function result none."""
    b = nested()
    ExportNamedComputationsPass().run(b.program, context)
    function = b.program.functions["f"]
    call = next(op for op in b.program.walk() if op.name == "func.call")
    assert str(b.program.sharding(function.regions[0].block.arguments[0])) == '<@mesh, [{"a"}, {}]>'
    assert str(b.program.sharding(call.result)) == '<@mesh, [{}, {"b"}]>'
    assert b.program.sharding(function.function_results[0]) is None
    assert "execution_thread" not in call.attributes


def test_results_are_sharded_like_what_is_returned(context):
    """All functions but main take over the shardings of the values they return, also that there is none."""
    b = copies('[{"a"}, {}]', '[{"b"}, {}]')
    main, first, second = b.program.functions.values()
    b.program.shardings.pop(second.regions[0].block.arguments[0].id)
    for function in (main, second):
        b.shard(function.function_results[0], '[{}, {"a"}]')
    PropagateToFuncResultsPass().run(b.program, context)
    actual = [b.program.sharding(function.function_results[0]) for function in (main, first, second)]
    assert [str(sharding) for sharding in actual] == ['<@mesh, [{}, {"a"}]>', '<@mesh, [{"a"}, {}]>', "None"]


def test_function_edges_are_sunk(context):
    """A value takes over its edge's sharding; one whose edge has none becomes open."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a"}, {}]')
        b.shard(y, '[{"a"}, {}]')
        first, second = (b.op("sdy.func_data_flow_edge", [value], [T]) for value in (x, y))
        b.shard(first, '[{}, {"a"}]')
        b.return_(first, second)
    SinkFuncDataFlowEdgesPass().run(b.program, context)
    assert [str(b.program.sharding(value)) for value in (x, y)] == ['<@mesh, [{}, {"a"}]>', "<@mesh, [{?}, {?}]>"]
    assert [op.name for op in b.program.walk()] == ["sdy.mesh", "func.func", "func.return"]


def test_copies_with_the_same_shardings_are_one(context):
    """Calls are redirected to the first copy that is alike; the names of the originals are forgotten."""
    b = copies('[{"a"}, {}]', '[{"b"}, {}]', '[{"a"}, {}]')
    UnflattenCallGraphPass().run(b.program, context)
    assert callees(b) == ["f_0", "f_1", "f_0"]
    assert not any("sdy.original_func_name" in op.attributes for op in b.program.functions.values())


def test_copies_of_different_functions_stay_apart(context):
    """Shardings alone do not make functions the same."""
    b = copies('[{"a"}, {}]', '[{"a"}, {}]')
    b.program.functions["f_1"].attributes["sdy.original_func_name"] = "g"
    UnflattenCallGraphPass().run(b.program, context)
    assert callees(b) == ["f_0", "f_1"]


def test_full_deduplication_takes_the_most_common_shardings(context):
    """All copies become one: that whose call gave its shardings more calls than the shardings chosen until then."""
    b = copies('[{"a"}, {}]', '[{"b"}, {}]', '[{"b"}, {}]', None)
    UnflattenCallGraphPass(dedup_functions_fully=True).run(b.program, context)
    assert callees(b) == ["f_2"] * 4


@pytest.mark.parametrize(
    ("function", "call", "expected"),
    [
        ('[{"a"}, {}]', '[{"a"}, {?}]', None),
        ('[{"a"}, {}]', '[{}, {"b"}]', '<@mesh, [{}, {"b"}]>'),
        ('[{"a"}, {}]', None, "<@mesh, [{}, {}]>"),
        (None, '[{"a"}, {}]', '<@mesh, [{"a"}, {}]>'),
        (None, None, None),
    ],
)
def test_results_that_differ_are_resharded(context, function, call, expected):
    """A call returns what its function does; what was wanted instead comes out of a reshard that all users use."""
    b = copies('[{"a"}, {}]')
    main, callee = b.program.functions.values()
    (call_op,) = (op for op in b.program.walk() if op.name == "func.call")
    if function is not None:
        b.shard(callee.function_results[0], function)
    if call is not None:
        b.shard(call_op.result, call)
    InsertFuncCallReshardsPass().run(b.program, context)
    reshards = [op for op in main.walk() if op.name == "sdy.reshard"]
    assert [str(b.program.sharding(op.result)) for op in reshards] == ([] if expected is None else [expected])
    assert call_op.result.users[0].name == ("func.return" if expected is None else "sdy.reshard")
    verify(b.program)
