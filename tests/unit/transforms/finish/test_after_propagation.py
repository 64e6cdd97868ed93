"""Shardings, rules, meshes and constraints once propagation is over."""

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.ir import Builder, OpaqueType, RawAttribute, tensor, verify
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding import ManualAxes, Mesh, TensorShardingPerValue, parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.transforms.finish.close_shardings import CloseShardingsPass
from shardy_py.transforms.finish.drop_meshes import DropShardingAndMeshPass
from shardy_py.transforms.finish.drop_propagation_data import (
    DropShardingRulesPass,
    RemovePropagationDebugInfoPass,
    RemoveShardingGroupsPass,
)
from shardy_py.transforms.finish.input_output_shardings import (
    RemoveSubAxesInInputOutputShardingsPass,
)
from shardy_py.transforms.finish.sharding_constraint_to_reshard import ShardingConstraintToReshardPass
from tests.unit.transforms.finish.reshards.reshard_toy import run

T = tensor(8, 8)
MESH = Mesh.of(a=2, b=4)


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


def example(*shardings, name="main"):
    """Return a builder with one function: its argument, an op and its result have the given shardings."""
    b = Builder(mesh=MESH)
    add_function(b, name, *shardings)
    return b


def add_function(b, name, argument, result=None, function_result=None):
    """Add a function with an op in it, and return the op's result."""
    with b.function(name, [T]) as (x,):
        y = b.op("toy.neg", [x], [T])
        for value, sharding in ((x, argument), (y, result)):
            if sharding:
                b.shard(value, sharding)
        b.return_(y, shardings=[function_result])
    return y


def texts(b):
    """Return all shardings of a program, in the order of the values."""
    return [str(sharding).removeprefix("<@mesh, ") for _, sharding in sorted(b.program.shardings.items())]


def test_every_sharding_is_closed(context):
    """Dimensions are closed, replicated axes are gone, priorities of axes and unreduced axes stay."""
    b = example(
        '[{"a", ?}p1, {?}p2]', '<@mesh, [{?}, {"a"}], replicated={"b"}>', '<@mesh, [{?}, {?}], unreduced={"a"}>'
    )
    CloseShardingsPass().run(b.program, context)
    assert texts(b) == ['[{"a"}p1, {}]>', '[{}, {"a"}]>', '[{}, {}], unreduced={"a"}>']


def test_shardings_of_manual_computations_are_closed_with_their_manual_axes(context):
    """A replicated manual axis is in the attribute only, and must go there."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        outer = parse_tensor_sharding('<@mesh, [{?}, {"b", ?}], replicated={"a"}>')
        per_value = TensorShardingPerValue((outer,))
        attributes = {"in_shardings": per_value, "out_shardings": per_value, "manual_axes": ManualAxes(("a",))}
        with b.region_op("sdy.manual_computation", [x], [T], attributes) as op, b.region(op, [T]) as inner:
            b.op("sdy.return", inner)
        b.shard(inner[0], '[{?}, {"b", ?}]')
        b.shard(op.results[0], outer)
        b.return_(*op.results)
    CloseShardingsPass().run(b.program, context)
    closed = '<[<@mesh, [{}, {"b"}]>]>'
    assert (str(op.attributes["in_shardings"]), str(op.attributes["out_shardings"])) == (closed, closed)
    assert texts(b) == ['[{}, {"b"}]>'] * 2


def test_rules_are_dropped_unless_the_user_wrote_them(context):
    """A custom rule is a part of the program."""
    b = Builder(mesh=MESH)
    rule = "<([i, j])->([i, j]) {i=8, j=8}>"
    with b.function("main", [T]) as (x,):
        negated = b.emit("toy.neg", [x], [T], {"sdy.sharding_rule": parse_op_sharding_rule(rule), "kept": 1})
        custom = parse_op_sharding_rule(rule.replace("}>", "}, custom>"))
        written = b.emit("toy.neg", [x], [T], {"sdy.sharding_rule": custom})
        b.return_(x)
    DropShardingRulesPass().run(b.program, context)
    assert negated.attributes == {"kept": 1}
    assert written.attributes == {"sdy.sharding_rule": custom}


def test_sharding_groups_are_removed(context):
    """Nothing else is."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.op("sdy.sharding_group", [x], group_id=3)
        b.return_(x)
    RemoveShardingGroupsPass().run(b.program, context)
    assert [op.name for op in b.program.walk()] == ["sdy.mesh", "func.func", "func.return"]
    verify(b.program)


def test_debug_information_is_removed(context):
    """From ops, and from the arguments and results of functions; other attributes stay."""
    b = example(None)
    function = b.program.functions["main"]
    op = function.regions[0].block.first
    origins = {"sdy.sharding_origins": {"a": "self"}}
    function.attributes["arg_attrs"] = (origins,)
    function.attributes["res_attrs"] = ({**origins, "jax.result_info": "x"},)
    edges = RawAttribute("#sdy.propagation_edges<[]>")
    op.attributes.update({"sdy.propagation_edges": edges, "sdy.result_sharding_origins": (), "kept": 1})
    RemovePropagationDebugInfoPass().run(b.program, context)
    assert op.attributes == {"kept": 1}
    assert "arg_attrs" not in function.attributes
    assert function.attributes["res_attrs"] == ({"jax.result_info": "x"},)


def test_dropping_leaves_no_mesh_and_no_sharding(context):
    """Attributes and table are empty, whichever had the sharding."""
    b = example('[{"a"}, {}]', '[{"b"}, {}]', "[{}, {}]")
    op = b.program.functions["main"].regions[0].block.first
    op.attributes["sdy.sharding"] = TensorShardingPerValue((b.sharding('[{"a"}, {}]'),))
    DropShardingAndMeshPass().run(b.program, context)
    assert b.program.shardings == {}
    assert b.program.meshes == {}
    assert op.attributes == {}


def test_dropping_leaves_what_an_op_cannot_be_without(context):
    """A reshard keeps its sharding; it should be gone by then."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        y = b.op("sdy.reshard", [x], [T])
        b.shard(y, '[{"a"}, {}]')
        b.return_(y)
    DropShardingAndMeshPass().run(b.program, context)
    assert texts(b) == ['[{"a"}, {}]>']


def test_sub_axes_are_cut_from_open_dimensions_of_the_main_function(context):
    """With them goes what comes after them; closed dimensions and other functions stay."""
    b = example('[{"a", "b":(1)2, ?}, {}]', '[{"b":(1)2, ?}, {}]', '[{"b":(1)2, "a"}, {"b":(2)2, ?}]')
    add_function(b, "other", '[{"b":(1)2, ?}, {}]')
    RemoveSubAxesInInputOutputShardingsPass().run(b.program, context)
    assert texts(b) == [
        '[{"a", ?}, {}]>',
        '[{"b":(1)2, ?}, {}]>',
        '[{"b":(1)2, "a"}, {?}]>',
        '[{"b":(1)2, ?}, {}]>',
    ]


def test_of_several_functions_one_must_be_main(context):
    """There is no telling whose inputs are those of the program."""
    b = example("[{?}, {}]", name="first")
    add_function(b, "second", "[{?}, {}]")
    with pytest.raises(UnsupportedError, match="main"):
        RemoveSubAxesInInputOutputShardingsPass().run(b.program, context)


def test_a_program_without_functions_has_nothing_to_cut(context):
    """An empty module is no error."""
    b = Builder(mesh=MESH)
    RemoveSubAxesInInputOutputShardingsPass().run(b.program, context)
    assert [op.name for op in b.program.walk()] == ["sdy.mesh"]


def test_a_constraint_becomes_a_reshard_with_its_attributes_and_users():
    """The reshard stands where the constraint stood and has its sharding, other attributes and users."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [tensor(8)]) as (x,):
        y = b.constrain(x, '[{"x"}]')
        y.owner.attributes["toy.note"] = "kept"
        b.return_(b.op("toy.neg", [y], [tensor(8)]), y)
    assert run(ShardingConstraintToReshardPass(), b) == [
        '%0 = reshard %arg0 [{"x"}]',
        "%1 = neg %0",
        "func.return %1, %0",
    ]
    (op,) = [op for op in b.program.walk() if op.name == "sdy.reshard"]
    assert op.attributes["toy.note"] == "kept"
    assert str(op.attributes["sharding"]) == '<@mesh, [{"x"}]>'


def test_a_constraint_on_a_token_becomes_a_reshard():
    """Tokens are constrained to replication over a mesh; that is kept."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [OpaqueType("!toy.token")]) as (token,):
        b.return_(b.constrain(token, "[]"))
    assert run(ShardingConstraintToReshardPass(), b) == ["%0 = reshard %arg0 []", "func.return %0"]
