"""Shardings of Shardy as those of JAX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_MEMORY_KIND = "mhlo.memory_kind"


def memory_kinds(function: Op, attributes: str, count: int) -> list[str | None]:
    """Return the memory that a program of JAX wants each argument or result in; None for that of the device.

    Args:
        function: The main function.
        attributes: The attribute with those of its arguments, or of its results.
        count: How many there are.
    """
    items: Sequence[Mapping[str, Any]] = function.attributes.get(attributes) or ({},) * count
    return [str(item[_MEMORY_KIND]).strip('"') if _MEMORY_KIND in item else None for item in items]


def to_named_sharding(
    sharding: TensorSharding | None,
    meshes: Mapping[str, Mesh],
    devices: Sequence[Any],
    *,
    memory_kind: str | None = None,
) -> Any:
    """Return the `jax.sharding.NamedSharding` of a sharding.

    Args:
        sharding: The sharding; None stands for a replicated value.
        meshes: The meshes of the program, all over the same devices.
        devices: The devices by the numbers that meshes give them.
        memory_kind: The memory; None for that of the device.
    """
    import jax
    import numpy

    mesh = mesh_of(sharding, meshes, len(devices))
    parts = parts_of_axes(mesh, sharding)
    ordered = numpy.array([devices[index] for index in mesh.device_ids or range(len(devices))], dtype=object)
    sizes = [part.size for axis in mesh.axes for part in parts[axis.name]]
    names = [part.name for axis in mesh.axes for part in parts[axis.name]]
    spec = jax.sharding.PartitionSpec(*partition_spec(sharding, parts))
    mesh_of_jax = jax.sharding.Mesh(ordered.reshape(sizes), names)
    return jax.sharding.NamedSharding(mesh_of_jax, spec, memory_kind=memory_kind)


def to_partition_spec(sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> Any:
    """Return the `jax.sharding.PartitionSpec` of a sharding; sub-axes have names of their own there."""
    import jax

    count = max((mesh.total_size for mesh in meshes.values()), default=1)
    return jax.sharding.PartitionSpec(
        *partition_spec(sharding, parts_of_axes(mesh_of(sharding, meshes, count), sharding))
    )


def over_abstract_mesh(sharding: TensorSharding | None, meshes: Mapping[str, Mesh], count: int) -> Any:
    """Return the `jax.sharding.NamedSharding` of a sharding over an abstract mesh, which needs no devices.

    Args:
        sharding: The sharding; None stands for a replicated value.
        meshes: The meshes of the program, all over the same devices.
        count: How many devices they have.
    """
    import jax

    mesh = mesh_of(sharding, meshes, count)
    parts = parts_of_axes(mesh, sharding)
    axes = [part for axis in mesh.axes for part in parts[axis.name]]
    abstract = jax.sharding.AbstractMesh(tuple(part.size for part in axes), tuple(part.name for part in axes))
    return jax.sharding.NamedSharding(abstract, jax.sharding.PartitionSpec(*partition_spec(sharding, parts)))


def over_mesh(spec: Any, mesh: Any) -> Any:
    """Return the `jax.sharding.NamedSharding` of a spec over a mesh of JAX.

    Raises:
        OptionError: the mesh has not the axes of the spec.
    """
    import jax

    try:
        return jax.sharding.NamedSharding(mesh, spec)
    except ValueError as error:
        raise OptionError(Diagnostic("mesh-conflict", str(error), hint="give the mesh of the program")) from None


def mesh_of(sharding: TensorSharding | None, meshes: Mapping[str, Mesh], count: int) -> Mesh:
    """Return the mesh of a sharding; for a replicated value any mesh over all devices."""
    sharding_mesh = None
    if sharding is not None:
        sharding_mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    if sharding_mesh is not None and sharding_mesh.total_size == count and (sharding_mesh.axes or count == 1):
        return sharding_mesh
    fitting = (mesh for mesh in meshes.values() if mesh.axes and mesh.total_size == count)
    return next(fitting, Mesh.of(devices=count))


@frozen
class Part:
    """A part of a mesh axis that is an axis of JAX's mesh, which knows no sub-axes.

    Args:
        name: The name of the axis there.
        pre_size: The size of all parts before it.
        size: Its own size.
    """

    name: str
    pre_size: int
    size: int


def parts_of_axes(mesh: Mesh, sharding: TensorSharding | None) -> dict[str, list[Part]]:
    """Return each axis of a mesh as the parts that the sub-axes of a sharding cut it into."""
    return cut_axes(mesh, () if sharding is None else sharding.axes())


def cut_axes(mesh: Mesh, used: Iterable[AxisRef]) -> dict[str, list[Part]]:
    """Return each axis of a mesh as the parts that some sub-axes cut it into."""
    cuts: dict[str, set[int]] = {axis.name: {1, axis.size} for axis in mesh.axes}
    for axis in used:
        if axis.sub_axis:
            cuts[axis.name] |= {axis.sub_axis.pre_size, axis.sub_axis.pre_size * axis.sub_axis.size}
    return {axis.name: _parts(axis.name, sorted(cuts[axis.name])) for axis in mesh.axes}


def _parts(name: str, cuts: list[int]) -> list[Part]:
    if len(cuts) <= 2:
        return [Part(name, 1, cuts[-1])]
    return [Part(f"{name}:({before}){after // before}", before, after // before) for before, after in pairwise(cuts)]


def partition_spec(sharding: TensorSharding | None, parts: Mapping[str, Sequence[Part]]) -> list[Any]:
    """Return a sharding as the entries of a PartitionSpec."""
    entries: list[Any] = []
    for dim in sharding.dim_shardings if sharding else ():
        names = tuple(part.name for axis in dim.axes for part in parts_in(axis, parts[axis.name]))
        entries.append(names[0] if len(names) == 1 else names or None)
    return entries


def parts_in(axis: AxisRef, parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts of an axis that an axis of a sharding, which may be a part of it, consists of."""
    if axis.sub_axis is None:
        return parts
    end = axis.sub_axis.pre_size * axis.sub_axis.size
    return [part for part in parts if axis.sub_axis.pre_size <= part.pre_size < end]
