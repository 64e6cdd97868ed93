"""Batch dimensions that an iota indexes become batching dimensions."""

import pytest

from shardy_dialects.stablehlo.collectives.mesh_axes import ReplicaGroupMesh
from shardy_dialects.stablehlo.gather_scatter.explicit_batching import ExplicitGatherScatterBatchingPass
from shardy_py.ir import Builder, tensor, verify
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.plugins import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.pass_names import parse_pipeline
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op
from tests.unit.outline import outline, sharding_of

COLUMN = tensor(4, 1, dtype="i32")
INDEX_MAP = "start_index_map = [0, 1], index_vector_dim = 1>"
GATHER = RawAttribute(f"#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], {INDEX_MAP}")


def gather(*, iota_dimension=0, through=(), concatenated=True, numbers=GATHER):
    """Return a program that gathers rows by an iota and something else."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [tensor(4, 8), COLUMN]) as (x, other):
        iota = b.op("stablehlo.iota", [], [COLUMN], iota_dimension=iota_dimension)
        for name in through:
            iota = (
                b.op(name, [iota], [COLUMN])
                if name != "stablehlo.clamp"
                else b.op(name, [other, iota, other], [COLUMN])
            )
        indices = tensor(4, 2, dtype="i32")
        if concatenated:
            value = b.op("stablehlo.concatenate", [iota, other], [indices], dimension=1)
        else:
            value = b.op("stablehlo.pad", [iota, other], [indices])
        result = b.op("stablehlo.gather", [x, value], [tensor(4, 1)], dimension_numbers=numbers)
        b.shard(result, '[{"a"}, {}]')
        b.return_(result)
    ExplicitGatherScatterBatchingPass().run(b.program, PassContext(REGISTRY))
    verify(b.program)
    return b.program


@pytest.mark.parametrize("through", [(), ("stablehlo.reshape",), ("stablehlo.clamp", "stablehlo.broadcast_in_dim")])
def test_the_component_with_the_iota_is_dropped(through):
    """The gather uses the other components, has batching dimensions and its sharding; what is unused then goes."""
    program = gather(through=through)
    assert outline(program.functions["main"]) == ["0 stablehlo.gather a0 a1", "1 func.return 0"]
    (op,) = [op for op in program.walk() if op.name == "stablehlo.gather"]
    assert str(op.attributes["dimension_numbers"]) == (
        "#stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1], index_vector_dim = 1>"
    )
    assert sharding_of(program, op.result) == '<@mesh, [{"a"}, {}]>'


@pytest.mark.parametrize(
    "changes",
    [
        {"iota_dimension": 1},
        {"through": ("stablehlo.negate",)},
        {"concatenated": False},
        {"numbers": RawAttribute(f"#stablehlo.gather<offset_dims = [0, 1], {INDEX_MAP}")},
        {
            "numbers": RawAttribute(
                f"#stablehlo.gather<collapsed_slice_dims = [0], operand_batching_dims = [1], {INDEX_MAP}"
            )
        },
    ],
)
def test_other_gathers_stay(changes):
    """Nothing changes where the indices are no iota along the batch, or the dimension numbers do not fit."""
    program = gather(**changes)
    (op,) = [op for op in program.walk() if op.name == "stablehlo.gather"]
    assert op.attributes["dimension_numbers"] == changes.get("numbers", GATHER)


def test_indices_of_one_op_are_sliced():
    """Where the index vectors are not a concatenation, the other components are cut out of them; a region is kept."""
    b = Builder()
    numbers = "#stablehlo.scatter<inserted_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [1, 0, 2], "
    with b.function("main", [tensor(4, 8, 8), tensor(4)]) as (x, updates):
        indices = b.op("stablehlo.iota", [], [tensor(4, 3, dtype="i32")], iota_dimension=0)
        attributes = {"scatter_dimension_numbers": RawAttribute(numbers + "index_vector_dim = 1>")}
        with (
            b.region_op("stablehlo.scatter", [x, indices, updates], [tensor(4, 8, 8)], attributes) as op,
            b.region(op, [tensor(), tensor()]) as (_, new),
        ):
            b.op("stablehlo.return", [new])
        b.return_(op.result)
    ExplicitGatherScatterBatchingPass().run(b.program, PassContext(REGISTRY))
    verify(b.program)
    assert outline(b.program.functions["main"]) == [
        "0 stablehlo.iota",
        "1 stablehlo.slice 0",
        "2 stablehlo.slice 0",
        "3 stablehlo.concatenate 1 2",
        "4 stablehlo.scatter a0 3 a1",
        "  5 stablehlo.return a3",
        "6 func.return 4",
    ]
    slices = [op for op in b.program.walk() if op.name == "stablehlo.slice"]
    assert [(op.attributes["start_indices"], op.attributes["limit_indices"]) for op in slices] == [
        ((0, 0), (4, 1)),
        ((0, 2), (4, 3)),
    ]


def test_equal_constants_are_hoisted_and_merged():
    """As by the rewriter of the reference, the last constant comes to stand first, and of equal ones one is left."""
    b = Builder()
    with b.function("main", [tensor(4)]) as (x,):
        for value in (1, 2, 1):
            x = b.op("stablehlo.add", [x, b.op("stablehlo.constant", [], [tensor(4)], value=value)], [tensor(4)])
        b.return_(x)
    ExplicitGatherScatterBatchingPass().run(b.program, PassContext(REGISTRY))
    assert outline(b.program.functions["main"]) == [
        "0 stablehlo.constant",
        "1 stablehlo.constant",
        "2 stablehlo.add a0 1",
        "3 stablehlo.add 2 0",
        "4 stablehlo.add 3 1",
        "5 func.return 4",
    ]


@pytest.mark.parametrize("pipeline", ["sdy-import-pipeline", "sdy-propagation-pipeline"])
def test_the_pipelines_have_it_as_an_option(pipeline):
    """The pass comes from the plugin and stands after the splitter of constants, if it is asked for."""
    name = ExplicitGatherScatterBatchingPass.name
    assert name not in [item.name for item in parse_pipeline(pipeline)]
    names = [item.name for item in parse_pipeline(f"{pipeline}{{enable-explicit-gather-scatter-batching=true}}")]
    assert names.index(name) == names.index("sdy-constant-or-scalar-splitter") + 1


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("mesh = @mesh_1", "mesh_1"),
        ('mesh = @"odd name"', "odd name"),
        ('mesh = #stablehlo.mesh<axes=[<name = "z", size = 4>]>', Mesh.of(z=4)),
        (
            'mesh = #stablehlo.mesh<axes=[<name = "z", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>',
            Mesh(Mesh.of(z=2).axes, (1, 0)),
        ),
        (
            'mesh = #stablehlo.mesh<axes=[<name = "z", size = 2>], device_ids=dense<"0x'
            + "01"
            + "00" * 15
            + '"> : tensor<2xi64>>',
            Mesh(Mesh.of(z=2).axes, (1, 0)),
        ),
    ],
)
def test_replica_groups_refer_to_a_mesh(text, mesh):
    """The mesh of replica groups is read by name or inlined, and replaced by either."""
    groups = f'#stablehlo.replica_group_mesh_axes<{text}, axes = [#stablehlo.axis_ref<name = "z">]>'
    op = make_op("all_reduce", [(4,)], [(4,)], replica_groups=groups)
    reference = ReplicaGroupMesh()
    assert reference.get_mesh(op) == mesh
    for other in ("new", Mesh.of(y=8), Mesh(Mesh.of(y=2).axes, (1, 0))):
        reference.set_mesh(op, other)
        assert reference.get_mesh(op) == other
        assert str(op.attributes["replica_groups"]).endswith(', axes = [#stablehlo.axis_ref<name = "z">]>')


def test_other_replica_groups_have_no_mesh():
    """Replica groups given as numbers refer to no mesh."""
    assert ReplicaGroupMesh().get_mesh(make_op("all_reduce", [(4,)], [(4,)])) is None
