"""Arrays whose shards lie in another order of devices, seen as arrays of their shards; no data moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def as_view(array: Any, mesh: Any) -> Any:
    """Return an array of the shards of another one along a new first dimension, over all devices of a mesh.

    Args:
        array: The array, over the same devices.
        mesh: The mesh of JAX.
    """
    import jax

    shards = {shard.device: shard.data for shard in array.addressable_shards}
    local_shards = [shards[device][None] for device in mesh.devices.flat if device in shards]
    return jax.make_array_from_single_device_arrays(
        (mesh.size, *local_shards[0].shape[1:]), view_sharding(mesh), local_shards
    )


def from_view(array: Any, shape: Sequence[int], sharding: Any) -> Any:
    """Return the array whose shards a view has.

    Args:
        array: The view.
        shape: The global shape.
        sharding: The sharding that says where the shards belong.
    """
    import jax

    shards = {shard.device: shard.data for shard in array.addressable_shards}
    local_shards = [shards[device][0] for device in sharding.mesh.devices.flat if device in shards]
    return jax.make_array_from_single_device_arrays(tuple(shape), sharding, local_shards)


def view_sharding(mesh: Any) -> Any:
    """Return the sharding of views over a mesh."""
    import jax

    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(mesh.axis_names))
