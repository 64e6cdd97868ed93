"""What a sharding is in the terms of JAX."""

from __future__ import annotations

from shardy_py.jax.named_shardings import mesh_of, partition_spec, parts_of_axes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding


def spec(text: str) -> list[object]:
    """Return the PartitionSpec of a sharding."""
    sharding = parse_tensor_sharding(text)
    return partition_spec(sharding, parts_of_axes(Mesh.of(a=8, b=2), sharding))


def test_full_axes() -> None:
    """Full axes keep their names."""
    assert spec('<@mesh, [{"a", "b"}, {}, {?}]>') == [("a", "b"), None, None]
    assert spec('<@mesh, [{"b"}]>') == ["b"]
    assert partition_spec(None, {}) == []


def test_sub_axes() -> None:
    """An axis of which a part is used is several axes of JAX's mesh, for that sharding alone."""
    assert spec('<@mesh, [{"a":(2)2}]>') == ["a:(2)2"]
    assert spec('<@mesh, [{"a":(1)2}, {"a":(4)2}]>') == ["a:(1)2", "a:(4)2"]
    assert spec('<@mesh, [{"a"}]>') == ["a"]


def test_replicated_values_are_over_all_devices() -> None:
    """A value without a sharding is over a mesh of all devices, or over one made for it."""
    meshes = {"empty": Mesh(), "one": Mesh((), (0,)), "mesh": Mesh.of(a=2)}
    assert mesh_of(None, meshes, 2) == meshes["mesh"]
    assert mesh_of(parse_tensor_sharding("<@empty, [{}]>"), meshes, 2) == meshes["mesh"]
    assert mesh_of(None, {}, 1).total_size == 1
