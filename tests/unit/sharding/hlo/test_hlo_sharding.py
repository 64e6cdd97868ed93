"""Shardings of HLO: text, tile assignments, meshes."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError, VerificationError
from shardy_py.sharding import parse_tensor_sharding
from shardy_py.sharding.hlo import (
    HloSharding,
    TileAssignment,
    derive_meshes,
    fits_mesh,
    from_hlo_sharding,
    manual_axes_of,
    parse_hlo_sharding,
    to_hlo_sharding,
)
from shardy_py.sharding.mesh import Mesh

xla_client = pytest.importorskip("jaxlib.xla_client")

TEXTS = [
    "{replicated}",
    "{manual}",
    "{unreduced}",
    "{unknown}",
    "{maximal device=3}",
    "{unknown shard_as 0}",
    "{replicated shard_like 4}",
    "{devices=[2,4]<=[8]}",
    "{devices=[2,2,2]<=[8] last_tile_dim_replicate}",
    "{devices=[2,4]<=[8] last_tile_dims={replicated}}",
    "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
    "{devices=[2,2]<=[2,2]T(0,1)}",
    "{devices=[1,8]<=[2,1,4]T(2,1,0)}",
    "{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dims={manual}}",
    "{devices=[1,2,4]<=[8] last_tile_dims={manual, replicated}}",
    "{devices=[2,2,2]<=[8] last_tile_dims={replicated, manual}}",
    "{devices=[2,2,2,2]<=[16] last_tile_dims={replicated,unreduced, manual}}",
    "{devices=[2,1,2]<=[4] last_tile_dims={manual, manual}}",
    "{devices=[1,1,8]<=[8] last_tile_dim_replicate}",
    "{devices=[1,1,2,1]<=[2] last_tile_dims={manual,replicated}}",
    "{devices=[2,2]0,2,1,3}",
    "{devices=[1,2]1,0 last_tile_dim_replicate}",
    "{devices=[1,2,2]0,2,1,3 last_tile_dims={replicated,manual}}",
    "{devices=[1,2,2,2]0,1,3,2,7,6,5,4 last_tile_dims={manual,unreduced,replicated}}",
    "{devices=[2,4]<=[2,2,2]T(1,2,0) last_tile_dim_replicate}",
    "{devices=[2,2,2]<=[2,2,2]T(1,2,0) last_tile_dims={replicated, manual}}",
    "{devices=[6,4]<=[2,3,4]T(1,0,2)}",
    "{devices=[4,3]<=[2,6]T(1,0)}",
    '{devices=[2,2]<=[4] metadata={op_name="a{"}}',
    "{devices=[2, 2]<=[4]}",
]
"""Texts in all forms, some of which XLA writes otherwise."""


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_tiles_are_those_of_xla(text: str) -> None:
    """XLA's parser gives the same text and the same device for every tile."""
    ours, theirs = parse_hlo_sharding(text), xla_client.HloSharding.from_string(text)
    assert str(ours) == str(theirs)
    assert parse_hlo_sharding(str(ours)) == ours
    if ours.tiles is not None:
        assert ours.tiles.devices == tuple(theirs.tile_assignment_devices())
        assert ours.tiles.dims == tuple(theirs.tile_assignment_dimensions())
        assert [kind.upper() for kind in ours.subgroups] == [str(kind).split(".")[-1] for kind in _subgroups(theirs)]


def _subgroups(sharding: object) -> list[object]:
    """Return the subgroups; XLA keeps those of replicated devices alone in a flag."""
    last = sharding.replicate_on_last_tile_dim()  # type: ignore[attr-defined]
    return ["REPLICATED"] if last else list(sharding.subgroup_types())  # type: ignore[attr-defined]


def test_tuples() -> None:
    """A tuple has one sharding per element."""
    text = "{{replicated}, {devices=[2,2]<=[4]}}"
    actual = parse_hlo_sharding(text)
    assert str(actual) == text == str(xla_client.HloSharding.from_string(text))
    assert [item.kind for item in actual.elements] == ["replicated", "tiled"]
    assert parse_hlo_sharding("{}") == HloSharding.tuple_of(())
    many = HloSharding.tuple_of([HloSharding.replicated(), HloSharding.manual()] * 6)
    assert str(many) == str(xla_client.HloSharding.from_string(str(many)))
    assert parse_hlo_sharding(str(many)) == many


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicated", "column 1: expected '{'"),
        ("{replicated", "end of the text"),
        ("{replicated} x", "column 14: expected the end"),
        ("{replicated manual}", "each part once"),
        ("{maximal}", "maximal device="),
        ("{device=3}", "maximal device="),
        ("{replicated last_tile_dim_replicate}", "expected one of"),
        ("{devices=[2,2]<=[2,2]}", "expected 'T'"),
        ("{devices=[4]<=[4]T(0)}", "found 'T'"),
        ("{devices=[2,3]<=[8]}", "are 6, the devices .* are 8"),
        ("{devices=[2,2]0,1,2,2}", "not 0 to 3, each once"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", "not a permutation"),
        ("{devices=[0]<=[0]}", "not all positive"),
        ("{devices=[2,2]<=[4] last_tile_dims={maximal}}", "expected manual, unreduced or replicated"),
        ("{devices=[2]<=[2] last_tile_dims={manual, replicated}}", "at most 1 subgroups"),
        ("{devices=[2]<=[2] metadata={", "end of the text"),
        ("{mesh['x'=2], [{'x'}]}", "unsupported-hlo-sharding"),
        ("{sharded}", "expected replicated"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    """What is no sharding is an error that shows the place or the text; XLA would end the process for some."""
    with pytest.raises(ParseError, match=message):
        parse_hlo_sharding(text)


def test_tile_assignments_as_arrays() -> None:
    """The array has one dimension per dimension of the tiles, then the subgroups."""
    actual = parse_hlo_sharding("{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}").tiles
    assert actual is not None
    assert actual.array() == (((0, 2, 4, 6),), ((1, 3, 5, 7),))
    assert actual.transposed((1, 2, 0)).array() == (((0, 1), (2, 3), (4, 5), (6, 7)),)
    assert repr(actual) == "TileAssignment('[2,1,4]<=[4,2]T(1,0)')"


@pytest.mark.parametrize(
    ("texts", "mesh"),
    [
        (["{devices=[4,1,2]<=[8] last_tile_dim_replicate}"], Mesh.of(_axis_0=4, _axis_1=2)),
        (["{devices=[8]<=[8]}", "{devices=[4,2]<=[8]}"], Mesh.of(_axis_0=4, _axis_1=2)),
        (["{devices=[2,4]<=[8]}", "{devices=[4,2]<=[8]}"], Mesh.of(_axis_0=2, _axis_1=2, _axis_2=2)),
        (["{{replicated}, {devices=[2,4]<=[4,2]T(1,0)}}"], Mesh.of(_axis_0=4, _axis_1=2)),
        (
            ["{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}"],
            Mesh.of(_axis_0=2, _axis_1=2, _axis_2=2),
        ),
        (["{devices=[2,6]<=[12]}", "{devices=[3,4]<=[12]}"], Mesh.of(_axis_0=12)),
        (["{devices=[2,2]0,2,1,3}"], Mesh.of(_axis_0=2, _axis_1=2)),
        (["{devices=[2,2]0,3,1,2}"], Mesh(Mesh.of(_axis_0=2, _axis_1=2).axes, (0, 3, 1, 2))),
        (
            ["{devices=[4,3]<=[2,6]T(1,0)}"],
            Mesh(Mesh.of(_axis_0=4, _axis_1=3).axes, (0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)),
        ),
    ],
)
def test_one_mesh_has_the_common_factors(texts: list[str], mesh: Mesh) -> None:
    """The axes of the derived mesh are the factors that the tiles of all shardings have in common."""
    shardings = list(map(parse_hlo_sharding, texts))
    assert derive_meshes(shardings) == (mesh,)
    assert all(fits_mesh(sharding, mesh) for sharding in shardings)


def test_orders_of_devices_without_common_digits_are_several_meshes() -> None:
    """Each order of the devices has a mesh of its own; without tiles the number of devices is one axis."""
    texts = ["{devices=[2,2]<=[4]}", "{devices=[2,2]0,3,1,2}", "{devices=[2,2]1,0,2,3}"]
    shardings = list(map(parse_hlo_sharding, texts))
    assert [mesh.device_ids for mesh in derive_meshes(shardings)] == [(), (0, 3, 1, 2), (1, 0, 2, 3)]
    assert derive_meshes([HloSharding.replicated()]) == ()
    assert derive_meshes([HloSharding.replicated()], device_count=4) == (Mesh.of(_axis_0=4),)


def test_the_order_of_devices_is_put_together() -> None:
    """Devices of one tile are in no order; that of the mesh follows from all shardings together."""
    mesh = Mesh(Mesh.of(x=2, y=2, z=2).axes, (7, 6, 5, 4, 3, 2, 1, 0))
    sharded = [parse_tensor_sharding(f'<@mesh, [{{"{axis}"}}]>') for axis in "yzx"]
    hlos = [to_hlo_sharding(sharding, mesh) for sharding in sharded]
    assert str(hlos[0]) == "{devices=[2,4]2,3,6,7,0,1,4,5 last_tile_dim_replicate}"
    (derived,) = derive_meshes(hlos)
    assert sorted(axis.size for axis in derived.axes) == [2, 2, 2]
    assert {str(to_hlo_sharding(from_hlo_sharding(hlo, derived, rank=1), derived)) for hlo in hlos} == set(
        map(str, hlos)
    )


def test_sub_axes_where_tiles_have_no_common_factors() -> None:
    """Tiles that cut the same axis in ways that do not fit together are sub-axes of it."""
    mesh = Mesh.of(_axis_0=12)
    collected = [
        str(from_hlo_sharding(parse_hlo_sharding(text), mesh, rank=2))
        for text in ("{devices=[2,6]<=[12]}", "{devices=[3,4]<=[12]}")
    ]
    assert collected == [
        '<@mesh, [{"_axis_0":(1)2}, {"_axis_0":(2)6}]>',
        '<@mesh, [{"_axis_0":(1)3}, {"_axis_0":(3)4}]>',
    ]


def test_special_kinds_over_a_mesh() -> None:
    """Maximal, unknown and unreduced shardings have their own forms; open dimensions are asked for."""
    mesh = Mesh.of(x=4, y=2)

    def read(text: str, **options: object) -> str:
        return str(from_hlo_sharding(parse_hlo_sharding(text), mesh, rank=1, **options))  # type: ignore[arg-type]

    assert read("{replicated}") == "<@mesh, [{}]>"
    assert read("{replicated}", open_dims=[0]) == "<@mesh, [{?}]>"
    assert read("{unknown}") == "<@mesh, [{?}]>"
    assert read("{unreduced}") == '<@mesh, [{}], unreduced={"x", "y"}>'
    assert read("{maximal device=2}") == "<mesh<[], device_ids=[2]>, []>"
    assert read("{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={unreduced}}") == '<@mesh, [{"y"}], unreduced={"x"}>'
    assert manual_axes_of(parse_hlo_sharding("{manual}"), mesh) == ("x", "y")
    assert manual_axes_of(parse_hlo_sharding("{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual}}"), mesh) == ("x",)
    assert manual_axes_of(HloSharding.replicated(), mesh) == ()


def test_manual_axes_are_a_subgroup() -> None:
    """Axes that are manual where the value is are a subgroup; if all are, the value is manual."""
    mesh, sharding = Mesh.of(x=4, y=2), parse_tensor_sharding('<@mesh, [{"x"}, {"y"}]>')
    actual = to_hlo_sharding(sharding, mesh, manual_axes=["x"])
    assert str(actual) == "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dims={manual}}"
    assert to_hlo_sharding(sharding, mesh, manual_axes=["x", "y"]) == HloSharding.manual()
    scalar = to_hlo_sharding(parse_tensor_sharding("<@mesh, []>"), mesh, manual_axes=["y"])
    assert str(scalar) == "{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}"


def test_what_does_not_fit_is_refused() -> None:
    """Other numbers of devices, other ranks, parts of manual axes and axes used twice are errors."""
    mesh = Mesh.of(x=4, y=2)
    tiled = HloSharding.tiled(TileAssignment.iota((4,)))
    with pytest.raises(VerificationError, match="mesh-mismatch"):
        from_hlo_sharding(tiled, mesh, rank=1)
    assert not fits_mesh(HloSharding.tuple_of([tiled]), mesh)
    with pytest.raises(VerificationError, match="rank 1, the tensor has rank 2"):
        from_hlo_sharding(tiled, Mesh.of(x=4), rank=2)
    with pytest.raises(VerificationError, match="manual-sub-axis"):
        manual_axes_of(parse_hlo_sharding("{devices=[4,2]<=[8] last_tile_dims={manual}}"), Mesh.of(x=8))
    with pytest.raises(VerificationError, match="tuple-sharding"):
        from_hlo_sharding(HloSharding.tuple_of([]), mesh, rank=1)
    for text, message in (('[{"x"}, {"x"}]', "overlapping-axes"), ('[{"z"}]', "unknown-axis")):
        with pytest.raises(VerificationError, match=message):
            to_hlo_sharding(parse_tensor_sharding(f"<@mesh, {text}>"), mesh)
