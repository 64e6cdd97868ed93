"""Laws of shardings of HLO, against `HloSharding` and `NamedSharding` of jaxlib and against the definition of tiles."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.hlo import (
    HloSharding,
    derive_meshes,
    fits_mesh,
    from_hlo_sharding,
    parse_hlo_sharding,
    to_hlo_sharding,
)
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.testing.strategies import meshes, tensor_shardings

xla_client = pytest.importorskip("jaxlib.xla_client")
jax = pytest.importorskip("jax")


@st.composite
def sharded(draw: st.DrawFn, max_devices: int = 48) -> tuple[TensorSharding, Mesh]:
    """Return a sharding and its mesh, with sub-axes, axes of size one and other orders of devices among them."""
    mesh = draw(meshes(max_devices=max_devices))
    return draw(tensor_shardings(mesh)), mesh


def _plain(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Return what HLO can say: axes of several devices, closed dimensions."""

    def large(axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
        return tuple(axis for axis in axes if axis.size(mesh) > 1)

    dims = tuple(DimensionSharding(large(dim.axes)) for dim in sharding.dim_shardings)
    return TensorSharding("mesh", dims, unreduced_axes=large(sharding.unreduced_axes))


@settings(deadline=None)
@given(sharded())
def test_there_and_back(case: tuple[TensorSharding, Mesh]) -> None:
    """A sharding comes back from HLO as it was, but for open dimensions, priorities and axes of one device."""
    sharding, mesh = case
    hlo = to_hlo_sharding(sharding, mesh)
    assert from_hlo_sharding(hlo, mesh, rank=sharding.rank) == _plain(sharding, mesh)
    assert parse_hlo_sharding(str(hlo)) == hlo


@settings(deadline=None)
@given(sharded())
def test_tiles_are_those_of_the_definition(case: tuple[TensorSharding, Mesh]) -> None:
    """In XLA's own tile assignment each device has the tile that its coordinates on the axes say."""
    sharding, mesh = case
    theirs = xla_client.HloSharding.from_string(str(to_hlo_sharding(sharding, mesh)))
    assert str(theirs) == str(to_hlo_sharding(sharding, mesh))
    if not theirs.is_tiled():
        assert theirs.is_replicated() or theirs.is_unreduced()
        return
    dims = theirs.tile_assignment_dimensions()
    collected: dict[int, tuple[int, ...]] = {}
    for device, tile in zip(theirs.tile_assignment_devices(), product(*map(range, dims)), strict=True):
        collected[device] = tile[: sharding.rank]
    assert collected == {device: _tile(sharding, mesh, place) for place, device in enumerate(_devices(mesh))}


def _devices(mesh: Mesh) -> tuple[int, ...]:
    return mesh.device_ids or tuple(range(mesh.total_size))


def _tile(sharding: TensorSharding, mesh: Mesh, place: int) -> tuple[int, ...]:
    """Return the tile at a place of the mesh, by the definition of axes and sub-axes."""
    coordinates = {}
    for axis in reversed(mesh.axes):
        place, coordinates[axis.name] = divmod(place, axis.size)
    tile = []
    for dim in sharding.dim_shardings:
        index = 0
        for axis in dim.axes:
            after = mesh.axis_size(axis.name) // axis.next_pre_size(mesh) if axis.sub_axis else 1
            index = index * axis.size(mesh) + coordinates[axis.name] // after % axis.size(mesh)
        tile.append(index)
    return tuple(tile)


@settings(deadline=None)
@given(st.data())
def test_derived_meshes_say_the_same(data: st.DataObject) -> None:
    """Over the meshes derived from the shardings of a program, each of them has the same tiles as before."""
    mesh = data.draw(meshes(max_devices=48))
    hlos = [to_hlo_sharding(data.draw(tensor_shardings(mesh)), mesh) for _ in range(data.draw(st.integers(1, 4)))]
    derived = derive_meshes(hlos, device_count=mesh.total_size)
    for hlo in hlos:
        rank = hlo.rank or 0
        again = [
            to_hlo_sharding(from_hlo_sharding(hlo, item, rank=rank), item)
            for item in derived
            if hlo.tiles is None or fits_mesh(hlo, item)
        ]
        assert again
        for other in again:
            assert _owners(other) == _owners(hlo)


def _owners(hlo: HloSharding) -> Any:
    """Return which devices have each tile: sets of those that have the same, in no order where they are summands."""
    tiles = hlo.tiles
    if tiles is None:
        return hlo
    sizes = dict(zip(hlo.subgroups, tiles.dims[len(tiles.dims) - len(hlo.subgroups) :], strict=True))
    width, summands = sizes.get("replicated", 1), sizes.get("unreduced", 1)
    same = [sorted(tiles.devices[start : start + width]) for start in range(0, tiles.size, width)]
    return hlo.tile_dims, [sorted(same[start : start + summands]) for start in range(0, len(same), summands)]


@settings(deadline=None)
@given(st.data())
def test_named_shardings_give_the_same(data: st.DataObject) -> None:
    """JAX converts a NamedSharding of the same axes to the same text."""
    mesh = data.draw(meshes(max_devices=48))
    mesh = evolve(mesh, device_ids=())
    order = data.draw(st.permutations([axis.name for axis in mesh.axes]))
    rank = data.draw(st.integers(0, 3))
    dims: list[list[str]] = [[] for _ in range(rank)]
    unreduced: list[str] = []
    for name in order:
        [*dims, unreduced, []][data.draw(st.integers(0, rank + 1))].append(name)
    explicit = jax.sharding.AxisType.Explicit
    abstract = jax.sharding.AbstractMesh(
        tuple(axis.size for axis in mesh.axes),
        tuple(axis.name for axis in mesh.axes),
        axis_types=(explicit,) * len(mesh.axes),
    )
    spec = jax.sharding.PartitionSpec(*map(tuple, dims), unreduced=frozenset(unreduced))
    theirs = jax.sharding.NamedSharding(abstract, spec)._to_xla_hlo_sharding(rank)
    sharding = TensorSharding(
        "mesh",
        tuple(DimensionSharding(tuple(map(AxisRef, names))) for names in dims),
        unreduced_axes=tuple(sorted(map(AxisRef, unreduced), key=mesh.sort_key)),
    )
    assert str(to_hlo_sharding(sharding, mesh)) == str(theirs)


def test_an_order_of_devices_that_no_axes_explain_comes_back() -> None:
    """The derived mesh of a list of devices in no regular order has that order."""
    order = (3, 0, 2, 1, 5, 4)
    mesh = Mesh((MeshAxis("a", 2), MeshAxis("b", 3)), order)
    hlo = to_hlo_sharding(TensorSharding("mesh", (DimensionSharding((AxisRef("b"),)),)), mesh)
    assert str(hlo) == "{devices=[3,2]1,3,0,5,2,4 last_tile_dim_replicate}"
    (derived,) = derive_meshes([hlo])
    assert derived.device_ids == (1, 3, 0, 5, 2, 4)
