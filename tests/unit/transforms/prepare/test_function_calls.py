"""What becomes of calls before propagation."""

import pytest

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.ir import Builder, OpaqueType, tensor, verify
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.prepare.add_data_flow_edges import AddFuncDataFlowEdgesPass
from shardy_py.transforms.prepare.flatten_call_graph import FlattenCallGraphPass
from shardy_py.transforms.prepare.import_func_calls import ImportFuncCallsPass

T = tensor(8, 8)
TOKEN = OpaqueType("!toy.token")


@pytest.fixture(scope="module")
def context():
    """Return a context that knows the dialects sdy and func only."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


def program(**bodies):
    """Return a builder; each function calls those named, one after the other, and returns the last result."""
    b = Builder(meshes={"mesh": Mesh.of(a=2, b=2), "one": Mesh((), (0,))})
    for name, callees in bodies.items():
        with b.function(name, [T]) as (x,):
            for callee in callees:
                x = b.call(callee, [x], [T])
            b.return_(x)
    return b


def calls(b):
    """Return the callees of every function, by its name."""
    return {
        name: [callee_of(op) for op in function.walk() if op.name == "func.call"]
        for name, function in b.program.functions.items()
    }


def origins(b):
    """Return the names of the originals of all copies."""
    attributes = [(name, op.attributes) for name, op in b.program.functions.items()]
    return {name: item["sdy.original_func_name"] for name, item in attributes if "sdy.original_func_name" in item}


def entry(b, name):
    """Return the first argument of a function."""
    return b.program.functions[name].regions[0].block.arguments[0]


def test_every_call_gets_a_function_of_its_own(context):
    """Only the first call keeps the original; callees of a copy are copied, too, and numbered before their caller."""
    b = program(main=["f", "f"], f=["g", "g"], g=[])
    FlattenCallGraphPass().run(b.program, context)
    assert calls(b) == {
        "main": ["f", "f_3"],
        "f": ["g", "g_0"],
        "g": [],
        "g_0": [],
        "g_1": [],
        "g_0_2": [],
        "f_3": ["g_1", "g_0_2"],
    }
    assert origins(b) == {"g_0": "g", "g_1": "g", "g_0_2": "g", "f_3": "f"}
    verify(b.program)


def test_copies_have_the_shardings_of_the_original(context):
    """A copy starts propagation where its original does."""
    b = program(main=["f", "f"], f=[])
    b.shard(entry(b, "f"), '[{"a"}, {?}]')
    b.shard(b.program.functions["f"].function_results[0], '[{}, {"b"}]')
    FlattenCallGraphPass().run(b.program, context)
    copy = b.program.functions["f_0"]
    assert str(b.program.sharding(copy.regions[0].block.arguments[0])) == '<@mesh, [{"a"}, {?}]>'
    assert str(b.program.sharding(copy.function_results[0])) == '<@mesh, [{}, {"b"}]>'


@pytest.mark.parametrize("item", [FlattenCallGraphPass(), ImportFuncCallsPass()])
def test_recursion_is_refused(context, item):
    """Functions that call each other in a circle would be copied for ever."""
    with pytest.raises(UnsupportedError, match="recursion"):
        item.run(program(main=["f"], f=["g"], g=["f"]).program, context)


@pytest.mark.parametrize("item", [FlattenCallGraphPass(), ImportFuncCallsPass()])
def test_unknown_functions_are_refused(context, item):
    """A call of a function that does not exist is an error that names it."""
    with pytest.raises(VerificationError, match="@nowhere"):
        item.run(program(main=["nowhere"]).program, context)


def test_bodies_are_put_where_they_are_called(context):
    """Calls become named computations, inside out, and the functions are gone."""
    b = program(main=["f"], f=["g"], g=[])
    ImportFuncCallsPass(add_data_flow_edges_on_named_computations=False).run(b.program, context)
    assert [op.name for op in b.program.walk()][2:] == [
        "func.func",
        "sdy.named_computation",
        "sdy.named_computation",
        "sdy.return",
        "sdy.return",
        "func.return",
    ]
    assert [op.attributes["name"] for op in b.program.walk() if op.name == "sdy.named_computation"] == ["f", "g"]
    verify(b.program)


def test_a_second_call_gets_a_copy_of_the_body(context):
    """Without flattening a body is copied, which the user is told."""
    b = program(main=["f", "f"], f=[])
    pass_context = PassContext(context.semantics)
    ImportFuncCallsPass().run(b.program, pass_context)
    assert sum(op.name == "sdy.named_computation" for op in b.program.walk()) == 2
    assert [warning.code for warning in pass_context.warnings] == ["copied-function"]
    verify(b.program)


def test_edges_are_added_on_arguments_and_results(context):
    """An imported call is a data-flow op, so its values get edges unless that is switched off."""
    b = program(main=["f"], f=[])
    ImportFuncCallsPass().run(b.program, context)
    assert sum(op.name == "sdy.data_flow_edge" for op in b.program.walk()) == 2


def test_edges_are_added_inside_copies(context):
    """The copy of a function has copies of the computations in it, whose arguments and results have edges, too."""
    b = program(main=["f", "f"], f=["g"], g=[])
    ImportFuncCallsPass().run(b.program, context)
    names = [op.name for op in b.program.walk()]
    assert names.count("sdy.named_computation") == 4
    assert names.count("sdy.data_flow_edge") == 8


def test_one_sharded_argument_opens_the_others(context):
    """A named computation holds all shardings of its arguments at once; a maximal one alone counts for nothing."""
    b = Builder(meshes={"mesh": Mesh.of(a=2), "one": Mesh((), (0,))})
    with b.function("main", [T]) as (x,):
        b.call("f", [x, x], [T])
        b.call("g", [x], [T])
        b.return_()
    with b.function("f", [T, T]) as (x, y):
        b.shard(y, '[{"a"}, {}]')
        b.return_(x)
    with b.function("g", [T]) as (x,):
        b.shard(x, "<@one, []>")
        b.return_(x)
    ImportFuncCallsPass().run(b.program, context)
    first, second = (op.regions[0].block.arguments for op in b.program.walk() if op.name == "sdy.named_computation")
    assert [str(b.program.sharding(value)) for value in first] == ["<@mesh, [{?}, {?}]>", '<@mesh, [{"a"}, {}]>']
    assert [b.program.sharding(value) for value in second] == [None]


def test_calls_of_declarations_stay(context):
    """There is no body to import, and nothing to copy."""
    b = Builder(mesh=Mesh.of(a=2))
    b.declare("f", [T], [T])
    with b.function("main", [T]) as (x,):
        b.return_(b.call("f", [b.call("f", [x], [T])], [T]))
    FlattenCallGraphPass().run(b.program, context)
    ImportFuncCallsPass().run(b.program, context)
    assert calls(b) == {"f": [], "main": ["f", "f"]}


def test_attributes_of_the_call_and_the_thread_of_the_function_are_kept(context):
    """What other dialects put on a call stays; the callee and the call's own attributes do not."""
    b = program(main=["f"], f=[])
    call = next(op for op in b.program.walk() if op.name == "func.call")
    call.attributes |= {"other.note": "kept", "no_inline": True}
    b.program.functions["f"].attributes["execution_thread"] = "host"
    ImportFuncCallsPass().run(b.program, context)
    (computation,) = (op for op in b.program.walk() if op.name == "sdy.named_computation")
    assert computation.attributes == {"name": "f", "other.note": "kept", "execution_thread": "host"}


def test_function_edges_stand_on_arguments_and_call_results(context):
    """Arguments of all functions but main and results of all calls get edges with their shardings; tokens do not."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T, TOKEN]) as (x, token):
        y, _ = b.call("f", [x, token], [T, TOKEN])
        b.shard(y, '[{"a"}, {}]')
        b.return_(y)
    with b.function("f", [T, TOKEN]) as (x, token):
        b.shard(x, '[{}, {"a"}]')
        b.return_(x, token)
    AddFuncDataFlowEdgesPass().run(b.program, context)
    edges = [op for op in b.program.walk() if op.name == "sdy.func_data_flow_edge"]
    assert [str(b.program.sharding(edge.result)) for edge in edges] == ['<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"a"}]>']
    assert [edge.result.users[0].name for edge in edges] == ["func.return", "func.return"]
    verify(b.program)


def test_function_edges_need_a_main_function(context):
    """Among several functions the one that nobody calls must be called main."""
    with pytest.raises(UnsupportedError, match="main"):
        AddFuncDataFlowEdgesPass().run(program(f=[], g=[]).program, context)
