"""Groups of devices written as axes of a mesh."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

from shardy_dialects.stablehlo.collectives.mesh_axes import group_axes, mesh_groups, read_mesh_groups
from shardy_dialects.stablehlo.local.ops import StablehloLocalOps
from shardy_py.frontends.mlir import import_module, parse_module, write_back
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.plugins import Registry
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.shard_positions import replica_groups
from shardy_py.transforms.run import run_on_attributes

MESH = Mesh(tuple(MeshAxis(name, size) for name, size in (("x", 2), ("y", 3), ("z", 4))), tuple(reversed(range(24))))
AXES = [names for count in (1, 2, 3) for names in permutations("xyz", count)]


def collective(groups: Any) -> Any:
    """Return an all-reduce with some groups, in a program with two meshes."""
    builder = Builder(meshes={"other": Mesh.of(a=8), "mesh": MESH})
    with builder.function("main", [tensor(8)]) as (x,):
        all_reduce = builder.op("stablehlo.all_reduce", [x], [tensor(8)], {"replica_groups": groups})
        builder.return_(all_reduce)
    return all_reduce.owner


@pytest.mark.parametrize("names", AXES)
def test_axes_are_found_in_their_order(names: tuple[str, ...]) -> None:
    """Groups of whole axes are written as these, major first, and reading them gives the groups back."""
    groups = replica_groups(MESH, [AxisRef(name) for name in names])
    assert group_axes(groups, MESH) == names
    written = mesh_groups(groups, {"other": Mesh.of(a=8), "mesh": MESH})
    assert "mesh = @mesh" in str(written)
    assert read_mesh_groups(collective(written)) == groups


def test_other_groups_have_no_axes() -> None:
    """Groups of a part of an axis, or in an order of no axes, are listed."""
    part = replica_groups(MESH, [AxisRef("z", SubAxis(2, 2))])
    assert mesh_groups(part, {"mesh": MESH}) is None
    assert mesh_groups((tuple(range(24)),), {"mesh": MESH}) is None
    assert mesh_groups(((0, 1),), {"mesh": MESH}) is None


def test_parts_of_axes_are_read() -> None:
    """A reference to a part of an axis names the devices along this part."""
    text = '#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "z", sub_axis_info = '
    op = collective(RawAttribute(f"{text}#stablehlo.sub_axis_info<pre_size = 2, size = 2>>]>"))
    assert read_mesh_groups(op) == replica_groups(MESH, [AxisRef("z", SubAxis(2, 2))])


def test_collectives_of_a_program_name_axes() -> None:
    """With the option, collectives over whole axes name them, others list devices; both are read alike."""
    text = """sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 7, 6, 5, 4]>
    func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
        -> (tensor<8x16xf32>, tensor<8x16xf32>) {
      %0 = sdy.all_gather [{"x"}, {"y"}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
      %1 = sdy.all_reduce {"y":(1)2} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
      return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
    }"""
    collected = []
    for enable in (False, True):
        program = import_module(parse_module(text))
        context = PassContext(Registry.from_entry_points())
        run_on_attributes(program, [ConvertGlobalToLocalPass(enable_rgv3=enable)], context)
        collected.append((str(write_back(program)), program))
    axes = 'axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y">]'
    assert [axes in written for written, _ in collected] == [False, True]
    assert [written.count("replica_groups = dense") for written, _ in collected] == [2, 1]
    listed, named = (
        [read.groups for op in program.walk() if (read := StablehloLocalOps().read_collective(op)) is not None]
        for _, program in collected
    )
    assert listed == named
