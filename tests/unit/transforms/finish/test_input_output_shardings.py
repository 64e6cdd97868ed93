"""Inputs and outputs are sharded evenly."""

import pytest

from shardy_py.ir import Builder, tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding import ManualAxes, Mesh, TensorShardingPerValue, parse_tensor_sharding
from shardy_py.transforms.finish.input_output_shardings import (
    UpdateNonDivisibleInputOutputShardingsPass,
    evenly_sharded,
)

MESH = Mesh.of(x=8, y=3, z=2, one=1)
T = tensor(6)


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


@pytest.mark.parametrize(
    ("size", "dim", "expected"),
    [
        (16, '{"x", "z"}p1', '{"x", "z"}p1'),
        (6, '{"x"}', '{"x":(1)2}'),
        (6, '{"x", "y", ?}p1', '{"x":(1)2, ?}'),
        (6, '{"y", "x"}', '{"y", "x":(1)2}'),
        (6, '{"x":(2)4}', '{"x":(2)2}'),
        (5, '{"x"}', "{}"),
        (12, '{"z", "x"}', '{"z", "x":(1)2}'),
        (3, '{"one", "z"}', "{}"),
        (0, '{"x"}', '{"x"}'),
    ],
)
def test_the_longest_even_prefix_stays(size, dim, expected):
    """The last axis may be cut; an axis with which the size has nothing in common ends the list."""
    sharding = parse_tensor_sharding(f"<@mesh, [{dim}]>")
    assert str(evenly_sharded(sharding, (size,), MESH)) == f"<@mesh, [{expected}]>"


def test_only_inputs_and_outputs_change(context):
    """Arguments and results of functions and results of calls do, those of other ops do not."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        y = b.op("toy.neg", [x], [T])
        z = b.call("main", [y], [T])
        for value in (x, y, z):
            b.shard(value, '[{"x"}]')
        b.return_(z, shardings=['<@mesh, [{"x"}], replicated={"y"}>'])
    function = b.program.functions["main"]
    UpdateNonDivisibleInputOutputShardingsPass().run(b.program, context)
    actual = [str(b.program.sharding(value)) for value in (x, y, z, function.function_results[0])]
    assert actual == [
        '<@mesh, [{"x":(1)2}]>',
        '<@mesh, [{"x"}]>',
        '<@mesh, [{"x":(1)2}]>',
        '<@mesh, [{"x":(1)2}], replicated={"y"}>',
    ]


def test_manual_computations_are_sharded_evenly_inside(context):
    """Their body has no room for padding."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        outer = TensorShardingPerValue((b.sharding('[{"x"}]'),))
        attributes = {"in_shardings": outer, "out_shardings": outer, "manual_axes": ManualAxes(())}
        with b.region_op("sdy.manual_computation", [x], [T], attributes) as op, b.region(op, [T]) as (inner,):
            b.op("sdy.return", [inner])
        b.shard(inner, '[{"x"}]')
        b.shard(op.results[0], '[{"x"}]')
        b.return_(*op.results)
    UpdateNonDivisibleInputOutputShardingsPass().run(b.program, context)
    assert [str(b.program.sharding(value)) for value in (inner, op.results[0])] == ['<@mesh, [{"x":(1)2}]>'] * 2
