"""Interned shardings."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.errors import VerificationError
from shardy_py.propagation.sharding_table import NO_SHARDING, ShardingTable
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.testing.strategies import meshes, tensor_shardings

MESH = Mesh.of(a=2, b=2)


def table(**more: Mesh) -> ShardingTable:
    """Return a table of some meshes."""
    return ShardingTable({"mesh": MESH, **more})


@given(st.data())
def test_equal_shardings_have_one_id(data: st.DataObject) -> None:
    """Two ids are equal if the shardings are, and an id gives its sharding back."""
    mesh = evolve(data.draw(meshes()), device_ids=())
    shardings = data.draw(st.lists(st.none() | tensor_shardings(mesh, rank=2), max_size=6))
    actual = ShardingTable({"mesh": mesh})
    ids = [actual.intern(item) for item in shardings]
    assert [actual.values[id_] for id_ in ids] == shardings
    for item, id_ in zip(shardings, ids, strict=True):
        assert (id_ == NO_SHARDING) == (item is None)
        assert actual.has_axes[id_] == any(dim.axes for dim in (item.dim_shardings if item else ()))
        for other, other_id in zip(shardings, ids, strict=True):
            assert (item == other) == (id_ == other_id)


def test_whole_axes_are_interned_by_their_names() -> None:
    """By names or as a value, an equal sharding has the same id, in either order."""
    names = ((("a",), ("b",)), (False, True))
    sharding = parse_tensor_sharding('<@mesh, [{"a", ?}, {"b"}]>')
    first, second = table(), table()
    assert first.intern(sharding) == first.intern_whole_axes("mesh", *names)
    assert second.values[second.intern_whole_axes("mesh", *names)] == sharding
    assert second.intern(sharding) == second.intern_whole_axes("mesh", *names)


def test_a_missing_sharding_is_open_along_whole_axes() -> None:
    """Its rank is that which is asked for; shardings with sub-axes have no such form."""
    actual = table()
    for rank in (0, 1, 3):
        tensor = actual.whole_axis_tensor(NO_SHARDING, rank)
        assert tensor is not None
        assert tensor.dims == ((),) * rank
    halves = actual.intern(parse_tensor_sharding('<@mesh, [{"a":(1)1}]>'))
    assert actual.whole_axis_tensor(halves, 1) is None


def test_the_open_sharding_of_a_sibling_is_on_its_mesh() -> None:
    """It has the rank asked for and no axes, and is interned as any other."""
    actual = table()
    sharded = actual.intern(parse_tensor_sharding('<@mesh, [{"a"}]>'))
    opened = actual.fully_open_like(sharded, 2)
    assert actual.values[opened] == TensorSharding.fully_open("mesh", 2)
    assert actual.intern(TensorSharding.fully_open("mesh", 2)) == opened


def test_a_common_mesh_is_one_mesh() -> None:
    """Missing shardings and empty meshes agree with any; two meshes with axes agree if they are equal."""
    actual = table(same=MESH, other=Mesh.of(c=4), empty=Mesh(()))
    of = {name: actual.intern(TensorSharding.fully_open(name, 1)) for name in actual.meshes}
    assert actual.common_mesh((NO_SHARDING, NO_SHARDING)) is None
    assert actual.common_mesh((NO_SHARDING, of["mesh"])) == ("mesh", MESH)
    assert actual.common_mesh((of["mesh"], of["same"])) == ("mesh", MESH)
    assert actual.common_mesh((of["empty"], of["mesh"])) == ("mesh", MESH)
    assert actual.common_mesh((of["mesh"], of["other"])) is None


def test_an_unknown_mesh_lists_the_known_ones() -> None:
    """The error names the mesh that is missing and those that the module has."""
    with pytest.raises(VerificationError, match="unknown mesh @nothing") as caught:
        table().mesh_of(TensorSharding.fully_open("nothing", 1))
    assert "@mesh" in caught.value.diagnostics[0].hint
