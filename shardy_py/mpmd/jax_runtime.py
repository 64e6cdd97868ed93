"""Devices of JAX as what runs programs over several meshes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shardy_py.api.propagate import propagate
from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.mpmd.dialect.types import Topology
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen


@frozen(eq=False)
class JaxRuntime:
    """Meshes of devices of JAX: each function runs through this package's partitioner.

    Args:
        topology: The meshes.
        devices: The devices of each mesh.
        registry: What is known about ops.
    """

    topology: Topology
    devices: Mapping[str, tuple[Any, ...]]
    registry: Registry

    @classmethod
    def of(cls, topology: Topology, devices: Mapping[str, Sequence[Any]] | None, registry: Registry) -> JaxRuntime:
        """Return the runtime of some meshes; without devices, each mesh gets the next ones of ``jax.devices()``.

        Raises:
            OptionError: there are too few devices.
        """
        require_library("jax", purpose="running a program needs", extra="jax")
        return cls(topology, _devices(topology, devices), registry)

    def function(self, text: str, mesh: str) -> Callable[..., Any]:
        """Return a function of JAX on the devices of a mesh."""
        result = propagate(text, self.topology.mesh(mesh), registry=self.registry)
        return result.to_jax(self.devices[mesh]).run

    def transfer(self, value: Any, mesh: str) -> Any:
        """Return an array on the devices of a mesh, cut as it was where both meshes have its axes.

        What is there already stays as it is.
        """
        import jax
        from jax.sharding import NamedSharding, PartitionSpec

        if isinstance(value, jax.Array) and value.devices() == set(self.devices[mesh]):
            return value
        target = self._jax_mesh(mesh)
        spec = PartitionSpec()
        sharding = getattr(value, "sharding", None)
        if isinstance(sharding, NamedSharding) and dict(sharding.mesh.shape) == dict(target.shape):
            spec = sharding.spec
        return jax.device_put(value, NamedSharding(target, spec))

    def _jax_mesh(self, name: str) -> Any:
        import numpy
        from jax.sharding import Mesh as JaxMesh

        mesh = self.topology.mesh(name) or Mesh()
        axes = {axis.name: axis.size for axis in mesh.axes} or {"device": 1}
        devices = numpy.array(self.devices[name], dtype=object).reshape(tuple(axes.values()))
        return JaxMesh(devices, tuple(axes))


def _devices(topology: Topology, devices: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Any, ...]]:
    """Return the devices of each mesh.

    Raises:
        OptionError: there are too few.
    """
    import jax

    rest = list(jax.devices())
    result: dict[str, tuple[Any, ...]] = {}
    for name, mesh in topology.meshes:
        chosen = list((devices or {}).get(name, ())) or rest[: mesh.total_size]
        if len(chosen) < mesh.total_size:
            count = sum(mesh.total_size for _, mesh in topology.meshes)
            message = f"the mesh {name!r} needs {mesh.total_size} devices, and {len(chosen)} are left"
            hint = f"on a host, set XLA_FLAGS=--xla_force_host_platform_device_count={count} before JAX starts"
            raise OptionError(Diagnostic("too-few-devices", message, hint=hint))
        result[name] = tuple(chosen[: mesh.total_size])
        rest = [device for device in rest if device not in result[name]]
    return result
