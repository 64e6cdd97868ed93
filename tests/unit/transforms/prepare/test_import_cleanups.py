"""The small passes before propagation: meshes, axes, calls, functions, symbols."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.graph.attributes import RawAttribute, SymbolRef
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Dialect, MeshReferenceOpInterface, Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_mesh
from shardy_py.sharding.tensor import ManualAxes, TensorShardingPerValue
from shardy_py.transforms.finish.drop_meshes import InlineMeshesPass
from shardy_py.transforms.prepare.flatten_call_graph import PreOrderFuncsPass
from shardy_py.transforms.prepare.import_func_calls import PropagateShardingFromFuncToCallPass
from shardy_py.transforms.prepare.lift_inlined_meshes import LiftInlinedMeshesPass
from shardy_py.transforms.prepare.manual_axes_cleanup import ManualAxesCleanupPass
from shardy_py.transforms.prepare.remove_size_one_axes import RemoveSizeOneAxesPass
from shardy_py.transforms.prepare.symbol_dce import SymbolDcePass
from tests.unit.outline import sharding_of

T = tensor(8, 8)


class MeshAttribute(MeshReferenceOpInterface):
    """An op whose attribute ``over`` is a mesh or the name of one."""

    def get_mesh(self, op):
        return op.attributes.get("over")

    def set_mesh(self, op, mesh):
        op.attributes["over"] = mesh


TOY = Dialect("toy")
TOY.op("toy.collective", mesh_reference=MeshAttribute())


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy and a toy dialect."""
    return PassContext(Registry.from_entry_points(plugins=[_Toy()], blocked=["stablehlo"]))


class _Toy:
    from shardy_py.plugins import hookimpl

    @hookimpl
    def shardy_register_dialects(self):
        return [TOY]


def per_value(b, *texts):
    """Return several shardings as one attribute."""
    return TensorShardingPerValue(tuple(b.sharding(text) for text in texts))


def manual_computation(b, ins, outs, axes):
    """Add a function with a manual computation; return it."""
    with b.function("main", [T] * len(ins)) as arguments:
        attributes = {"in_shardings": per_value(b, *ins), "out_shardings": per_value(b, *outs)}
        attributes["manual_axes"] = ManualAxes(tuple(axes))
        types = [T] * len(ins)
        with (
            b.region_op("sdy.manual_computation", arguments, [T] * len(outs), attributes) as op,
            b.region(op, types) as inner,
        ):
            b.op("sdy.return", [inner[0]] * len(outs))
        b.return_(*op.results)
    return op


def texts(op, name):
    """Return the shardings in an attribute as text."""
    return [str(sharding) for sharding in op.attributes[name].shardings]


def test_inlined_meshes_get_names_and_equal_meshes_one(context):
    """Shardings and other references use the name of the first equal mesh, or of a new one after the last."""
    b = Builder(meshes={"m": Mesh.of(a=2), "n": Mesh.of(b=4), "copy": Mesh.of(a=2)})
    with b.function("main", [T, T, T]) as (x, y, z):
        b.shard(x, "<@copy, [{}, {}]>")
        b.shard(y, '<mesh<["c"=2]>, [{"c"}, {}]>')
        b.shard(z, '<mesh<["b"=4]>, [{"b"}, {}]>')
        c = b.op("toy.collective", [x], [T], over="copy")
        d = b.op("toy.collective", [c], [T], over=Mesh.of(b=4))
        b.shard(d, "<mesh<[], device_ids=[3]>, []>")
        b.return_(d, shardings=["<mesh<[]>, [{}, {}]>"])
    LiftInlinedMeshesPass().run(b.program, context)
    verify(b.program)
    names = ["m", "n", "mesh", "empty_mesh", "maximal_mesh_3", "mesh_0"]
    assert list(b.program.meshes) == names
    assert [sharding_of(b.program, value) for value in (x, y, z, d)] == [
        "<@m, [{}, {}]>",
        '<@mesh, [{"c"}, {}]>',
        '<@n, [{"b"}, {}]>',
        "<@maximal_mesh_3, []>",
    ]
    # An inlined mesh of another dialect is not compared with those of ours, as in the reference.
    assert [c.owner.attributes["over"], d.owner.attributes["over"]] == ["m", "mesh_0"]
    meshes = {op.attributes["sym_name"]: op for op in b.program.body.ops if op.name == "sdy.mesh"}
    assert meshes["m"].attributes["stablehlo.mesh"] == {"axes": ({"name": "a", "size": 2},)}
    assert str(meshes["maximal_mesh_3"].attributes["stablehlo.mesh"]["device_ids"]) == "dense<[3]> : tensor<1xi64>"


def test_inlining_is_the_inverse_of_lifting(context):
    """Every reference becomes the mesh, and no symbol is left; manual computations keep their manual axes."""
    b = Builder(mesh=Mesh.of(a=2, b=2))
    op = manual_computation(b, ['[{"a"}, {"b"}]'], ['[{"a"}, {}]'], ["a"])
    InlineMeshesPass().run(b.program, context)
    assert b.program.meshes == {}
    assert texts(op, "in_shardings") == ['<mesh<["a"=2, "b"=2]>, [{"a"}, {"b"}]>']
    assert sharding_of(b.program, op.regions[0].block.arguments[0]) == '<mesh<["a"=2, "b"=2]>, [{}, {"b"}]>'
    LiftInlinedMeshesPass().run(b.program, context)
    assert list(b.program.meshes) == ["mesh"]
    assert texts(op, "out_shardings") == ['<@mesh, [{"a"}, {}]>']


def test_axes_of_size_one_go_from_all_shardings(context):
    """They go from dimensions, replicated and unreduced axes; a closed dimension without axes loses its priority."""
    b = Builder(mesh=Mesh.of(a=1, b=2))
    op = manual_computation(b, ['[{"b", "a"}, {}]'], ['<@mesh, [{"b"}, {}], replicated={"a"}>'], ["b"])
    (x,) = b.program.functions["main"].regions[0].block.arguments
    b.program.shardings[x.id] = b.sharding('<@mesh, [{"a"}p1, {"b", ?}p2], unreduced={"a"}>')
    RemoveSizeOneAxesPass().run(b.program, context)
    verify(b.program)
    assert sharding_of(b.program, x) == '<@mesh, [{}, {"b", ?}p2]>'
    assert texts(op, "in_shardings") == texts(op, "out_shardings") == ['<@mesh, [{"b"}, {}]>']
    assert b.program.meshes["mesh"] == Mesh.of(a=1, b=2)


def test_manual_axes_are_sorted_and_named_in_every_sharding(context):
    """Manual axes a sharding does not use are replicated; an empty mesh is replaced by the common one."""
    b = Builder(mesh=Mesh.of(a=2, b=2, c=2), meshes={"none": Mesh()})
    op = manual_computation(b, ['[{"c"}, {"b"}]', "<@none, [{}, {}]>"], ['[{"a"}, {}]'], ["c", "a"])
    ManualAxesCleanupPass().run(b.program, context)
    verify(b.program)
    assert op.attributes["manual_axes"] == ManualAxes(("a", "c"))
    assert texts(op, "in_shardings") == [
        '<@mesh, [{"c"}, {"b"}], replicated={"a"}>',
        '<@mesh, [{}, {}], replicated={"a", "c"}>',
    ]
    assert texts(op, "out_shardings") == ['<@mesh, [{"a"}, {}], replicated={"c"}>']
    assert sharding_of(b.program, op.regions[0].block.arguments[0]) == '<@mesh, [{}, {"b"}]>'


def test_manual_axes_of_no_mesh_are_an_error(context):
    """Without any sharding nobody knows the mesh of the manual axes, which is all right in an empty body only."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main") as ():
        attributes = {"in_shardings": per_value(b), "out_shardings": per_value(b), "manual_axes": ManualAxes(("a",))}
        for body in ([], ["toy.effect"]):
            with b.region_op("sdy.manual_computation", [], [], dict(attributes)) as op, b.region(op):
                for name in (*body, "sdy.return"):
                    b.op(name)
        b.return_()
    with pytest.raises(VerificationError, match="op has manual_axes when there are no in/out shardings") as error:
        ManualAxesCleanupPass().run(b.program, context)
    assert len(error.value.diagnostics) == 1


def test_meshes_of_one_manual_computation_must_agree(context):
    """Shardings over different meshes are an error."""
    b = Builder(mesh=Mesh.of(a=2), meshes={"other": Mesh.of(a=4)})
    manual_computation(b, ["[{}, {}]"], ["<@other, [{}, {}]>"], ["a"])
    with pytest.raises(VerificationError, match="different meshes"):
        ManualAxesCleanupPass().run(b.program, context)


def test_calls_take_the_shardings_of_function_results(context):
    """A call without any sharding takes those of the function, fully open where there is none; others keep theirs."""
    b = Builder(mesh=Mesh.of(a=2), meshes={"one": parse_mesh("<[], device_ids=[1]>")})
    with b.function("main", [T]) as (x,):
        first = b.call("f", [x], [T, T])
        second = b.call("f", [x], [T, T])
        single = b.call("g", [x], [T])
        b.shard(second[1], "[{}, {}]")
        b.return_(*first, *second, single)
    with b.function("f", [T]) as (x,):
        b.return_(x, x, shardings=['[{"a"}, {?}]', None])
    with b.function("g", [T]) as (x,):
        b.return_(x, shardings=["<@one, []>"])
    PropagateShardingFromFuncToCallPass().run(b.program, context)
    actual = [sharding_of(b.program, value) for value in (*first, *second, single)]
    assert actual == ['<@mesh, [{"a"}, {?}]>', "<@mesh, [{?}, {?}]>", None, "<@mesh, [{}, {}]>", None]


def test_functions_stand_before_those_they_call(context):
    """Functions move behind all else, callers first; declarations stay."""
    b = Builder()
    calls = {"c": [], "a": ["c", "b"], "main": ["a"], "b": []}
    b.declare("extern", [T], [T])
    for name, callees in calls.items():
        with b.function(name, [T]) as (x,):
            for callee in callees:
                x = b.call(callee, [x], [T])
            b.return_(x)
    PreOrderFuncsPass().run(b.program, context)
    assert list(b.program.functions) == ["extern", "main", "a", "b", "c"]


def test_symbols_that_nobody_needs_are_erased(context):
    """A private symbol stays if a public one or another op refers to it, directly or not, in whatever attribute."""
    b = Builder(mesh=Mesh.of(a=2), meshes={"used": Mesh.of(a=4), "unused": Mesh.of(a=8)})
    for op in b.program.body.ops:
        if op.attributes["sym_name"] != "mesh":
            op.attributes["sym_visibility"] = "private"
    with b.function("main", [T]) as (x,):
        y = b.call("called", [x], [T])
        b.shard(y, "<@used, [{}, {}]>")
        b.op("toy.apply", [], functions=({"in": SymbolRef("in_dictionary")}, RawAttribute('#toy<@"in text">')))
        b.return_(y)
    for name in ("called", "indirect", "in_dictionary", "in text", "dead", "dead_with", "public"):
        with b.function(name, [T]) as (x,):
            callee = {"called": "indirect", "dead": "dead_with", "dead_with": "dead"}.get(name)
            b.return_(b.call(callee, [x], [T]) if callee else x)
        if name != "public":
            b.program.functions[name].attributes["sym_visibility"] = "private"
    SymbolDcePass().run(b.program, context)
    assert list(b.program.functions) == ["main", "called", "indirect", "in_dictionary", "in text", "public"]
    assert list(b.program.meshes) == ["mesh", "used"]
