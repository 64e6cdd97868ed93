"""Reshards give way to collectives, also those of block arguments whose data flow the reference does not know."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py.errors import VerificationError
from shardy_py.frontends.mlir import parse_module, print_module
from shardy_py.ir import Builder, RawAttribute, tensor, verify
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.testing import run_sharded
from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass
from shardy_py.transforms.pass_options import make_pass

T = tensor(8, 8)
MESH = Mesh.of(x=2, y=2)
MESHES = {
    "mesh": MESH,
    "same": MESH,
    "other": Mesh.of(a=4),
    "rotated": Mesh(MESH.axes, (1, 2, 3, 0)),
    "device": Mesh((), (0,)),
}


@pytest.fixture(scope="module")
def context():
    """Return a context with the dialect sdy."""
    return PassContext(Registry.from_entry_points(blocked=["stablehlo"]))


def reshard(b, value, sharding):
    """Add a reshard and return its result."""
    result = b.op("sdy.reshard", [value], [value.type])
    b.program.shardings[result.id] = b.sharding(sharding)
    return result


def program(*shardings, source='[{"x"}, {}]', barriers=False):
    """Return a builder with a chain of reshards of one argument."""
    b = Builder(meshes=MESHES)
    with b.function("main", [T]) as (value,):
        if source:
            b.shard(value, source)
        for sharding in shardings:
            if barriers:
                attributes = {"allowed_direction": RawAttribute("BACKWARD")}
                value = b.op("sdy.propagation_barrier", [value], [T], attributes)
            value = reshard(b, value, sharding)
        b.return_(value)
    return b


def run(b, context, **options):
    """Run the pass and return what stands in the function, with operands and shardings."""
    make_pass(ReshardToCollectivesPass, options).run(b.program, context)
    verify(b.program)
    function = b.program.functions["main"]
    ops = list(function.regions[0].block.ops)
    names = {value.id: "arg" for value in function.regions[0].block.arguments}
    names |= {op.results[0].id: op.name.removeprefix("sdy.") for op in ops if op.results}
    lines = []
    for op in ops:
        line = f"{op.name.removeprefix('sdy.').removeprefix('func.')} {names[op.operands[0].id]}"
        sharding = b.program.sharding(op.results[0]) if op.results else None
        lines.append(f"{line} {sharding}" if sharding else line)
    return lines


def test_a_reshard_becomes_collectives(context):
    """The collectives stand where the reshard stood, with their axes as attribute."""
    b = program('[{}, {"x", "y"}]')
    assert run(b, context) == [
        'all_slice arg <@mesh, [{"x", "y"}, {}]>',
        'all_to_all all_slice <@mesh, [{}, {"x", "y"}]>',
        "return all_to_all",
    ]
    first, second, _ = b.program.functions["main"].regions[0].block.ops
    assert str(first.attributes["slicing_axes"]) == '[{"y"}, {}]'
    assert str(second.attributes["params"]) == '[{"x", "y"}: 0->1]'


def test_a_chain_goes_on_from_what_the_first_became(context):
    """The second reshard works on the result of the collectives of the first."""
    assert run(program('[{"x", "y"}, {}]', '[{"x"}, {}]'), context) == [
        'all_slice arg <@mesh, [{"x", "y"}, {}]>',
        'all_gather all_slice <@mesh, [{"x"}, {}]>',
        "return all_gather",
    ]


def test_nothing_to_do_leaves_nothing(context):
    """A reshard to the sharding the operand has is gone, open dimensions aside."""
    assert run(program('[{"x", ?}, {}]'), context) == ["return arg"]
    assert run(program("[{}, {}]", source=None), context) == ["return arg"]


def test_redundant_reshards_stay_on_request(context):
    """The option keeps a reshard that changes nothing, and only that."""
    actual = run(program('[{"x"}, {}]', "[{}, {}]"), context, **{"keep-redundant-reshards": "true"})
    assert actual == ['reshard arg <@mesh, [{"x"}, {}]>', "all_gather reshard <@mesh, [{}, {}]>", "return all_gather"]


def test_barriers_are_passed_by(context):
    """The collectives take the operand of the barrier, which stays."""
    assert run(program("[{}, {}]", barriers=True), context) == [
        "propagation_barrier arg",
        "all_gather arg <@mesh, [{}, {}]>",
        "return all_gather",
    ]


def test_a_missing_sharding_is_a_replicated_one(context):
    """An operand without sharding can be sliced."""
    assert run(program('[{}, {"y"}]', source=None), context)[0] == 'all_slice arg <@mesh, [{}, {"y"}]>'


@pytest.mark.parametrize("target", ['<@other, [{"a"}, {}]>', "<@device, []>"])
def test_reshards_between_different_devices_stay(context, target):
    """No collective leads to a mesh with other axes, or to a single device."""
    assert run(program(target), context) == [f"reshard arg {target}", "return reshard"]


@pytest.mark.parametrize("target", ["<@mesh, []>", "<@device, []>", "<@second, []>"])
@pytest.mark.parametrize("source", ["<@mesh, []>", "<@device, []>", None])
def test_reshards_of_scalars_take_nothing(source, target, context):
    """A scalar is the same on every mesh and on a single device, as in the reference."""
    b = Builder(meshes={**MESHES, "second": Mesh((), (1,))})
    with b.function("main", [tensor()]) as (value,):
        if source:
            b.shard(value, source)
        result = b.op("sdy.reshard", [value], [value.type])
        b.shard(result, target)
        b.return_(result)
    assert run(b, context) == ["return arg"]


def test_reshards_from_one_device_to_another_take_nothing(context):
    """Neither sharding has dimensions, so that both count as replicated, as in the reference."""
    assert run(program("<@device, []>", source="<@device, []>"), context) == ["return arg"]
    target = '<@mesh, [{"x"}, {}]>'
    assert run(program(target, source="<@device, []>"), context) == [f"reshard arg {target}", "return reshard"]


def test_another_order_of_devices_takes_a_permute(context):
    """The axes stay, the devices change places."""
    target = '<@rotated, [{"x"}, {}]>'
    assert run(program(target), context) == [f"collective_permute arg {target}", "return collective_permute"]


def test_another_name_of_the_mesh_takes_nothing(context):
    """Two names of one mesh are the same devices; the reference refuses its own permute here."""
    assert run(program('<@same, [{"x"}, {}]>'), context) == ["return arg"]
    assert run(program('<@same, [{}, {"x"}]>'), context)[0] == 'all_to_all arg <@same, [{}, {"x"}]>'


def test_full_replication_keeps_the_mesh_of_the_operand(context):
    """Gathering everything is the same on any mesh."""
    assert run(program("<@other, [{}, {}]>"), context)[0] == "all_gather arg <@mesh, [{}, {}]>"


def test_shardings_of_different_rank_are_refused(context):
    """A reshard cannot change the rank."""
    with pytest.raises(VerificationError, match="rank"):
        run(program('[{"x"}]'), context)


def test_an_unknown_mesh_is_refused(context):
    """Every sharding needs its mesh."""
    with pytest.raises(VerificationError, match="no mesh @nowhere"):
        run(program('<@nowhere, [{"x"}, {}]>'), context)


TOY = sdy.Dialect("toy")
TOY.op("toy.cumsum", rule="i j -> i j", need_replication="i", traits=[sdy.Pure])
TOY.op("toy.add", traits=[sdy.Elementwise, sdy.Pure])
TOY.op("toy.loop", data_flow=sdy.LoopDataFlow(), traits=[sdy.RecursiveMemoryEffects])
TOY.op("toy.yield", traits=[sdy.IsTerminator, sdy.Pure])

LOOP = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<4x6xf32> {
  %0 = "toy.loop"(%arg0) ({
  ^bb0(%arg1: tensor<4x6xf32>):
    %1 = "toy.cumsum"(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "toy.cumsum"(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %3 = "toy.add"(%1, %2) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    "toy.yield"(%3) : (tensor<4x6xf32>) -> ()
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
"""

WHILE = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.while(%arg1 = %arg0) : tensor<4x6xf32> cond {
    %1 = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.custom_call @own(%arg1) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    stablehlo.return %1 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}
"""


@pytest.fixture(name="plugin")
def _plugin():
    class Toy:
        @sdy.hookimpl
        def shardy_register_dialects(self):
            return [TOY]

    return Toy()


def test_a_collective_of_an_argument_finds_its_sharding_on_a_reshard(plugin):
    """There is one reshard for all collectives of an argument, and the module can be read again."""
    result = sdy.propagate(LOOP, plugins=[plugin], explicit_collectives=True)
    text = print_module(parse_module(print_module(result.module)))
    assert text.count('sdy.reshard %arg1 <@mesh, [{"a"}, {"b"}]>') == text.count("sdy.reshard") == 1
    name = re.search(r"(%\d+) = sdy.reshard", text)[1]
    assert text.count(f'sdy.all_gather [{{"a"}}, {{}}] {name} out_sharding') == text.count("sdy.all_gather") == 2


def test_loops_that_the_reference_knows_have_no_such_reshard():
    """The reference finds the shardings of a while op itself."""
    result = sdy.propagate(WHILE, explicit_collectives=True)
    text = print_module(result.module)
    assert 'sdy.all_gather [{"a"}, {}] %iterArg' in text
    assert "sdy.reshard" not in text


def test_a_loop_of_another_dialect_runs_on_its_shards(plugin):
    """The reshard moves nothing: what devices run are the collectives."""

    def loop(value, regions):
        return regions[0](regions[0](value))

    functions = {"toy.cumsum": lambda value: np.cumsum(value, 0), "toy.add": np.add, "toy.loop": loop}
    run = run_sharded(LOOP, functions, plugins=[plugin])
    assert run.ok, str(run)
    assert "all_gather" in run.collectives
