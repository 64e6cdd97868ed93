"""Meshes of JAX for programs: that of the caller where it is the same, and that of the context while JAX traces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.jax.callable.boundary import has_view
from shardy_py.jax.callable.contexts import concrete_context_mesh
from shardy_py.jax.callable.placement import PortPlacement, ProgramPlacement
from shardy_py.jax.named_shardings import partition_spec, parts_of_axes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import devices_of
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

Copies = tuple[tuple[int, ...], ...]
"""For each group of devices that runs the program, the partition that each of its devices is."""


def make_mesh(mesh: Mesh, devices: Sequence[Any], axes: Iterable[tuple[str, int]]) -> Any:
    """Return a mesh of JAX.

    Args:
        mesh: The mesh of the program, which says the order of the devices.
        devices: The devices, by the numbers that the mesh gives them.
        axes: The names and sizes of the axes of JAX's mesh.
    """
    import jax
    import numpy

    names, sizes = zip(*axes, strict=True)
    order = [devices[number] for number in mesh.device_ids or range(len(devices))]
    return jax.sharding.Mesh(numpy.array(order, dtype=object).reshape(sizes), names)


def uncut_axes(mesh: Mesh) -> tuple[tuple[str, int], ...]:
    """Return the names and sizes of the axes of a mesh; JAX's meshes have one axis at least."""
    return tuple((axis.name, axis.size) for axis in mesh.axes) or (("device", 1),)


def find_mesh(default: Any, arguments: Sequence[Any]) -> Any:
    """Return the mesh of the arguments or of the context that has the axes and devices of a mesh, else that one."""
    import jax

    def fits(mesh: Any) -> bool:
        return isinstance(mesh, jax.sharding.Mesh) and bool(mesh.size) and _is_same(mesh, default)

    for value in arguments:
        mesh = getattr(value.sharding, "mesh", None) if isinstance(value, jax.Array) else None
        if fits(mesh):
            return mesh
    current = concrete_context_mesh()
    return current if fits(current) else default


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two meshes have the same devices along the same axes; those of size one do not matter."""
    if one is other:
        return True
    is_alike = _wide_axes(one.shape) == _wide_axes(other.shape)
    return is_alike and list(one.devices.flat) == list(other.devices.flat)


def _wide_axes(shape: Any) -> list[tuple[str, int]]:
    return [(name, size) for name, size in shape.items() if size > 1]


def mesh_over(placement: ProgramPlacement, mesh: Any) -> Any:
    """Return a mesh of JAX with its axes cut as the shardings of a program want them."""
    import jax

    if not placement.is_cut:
        return mesh
    names, sizes = zip(*placement.axes, strict=True)
    return jax.sharding.Mesh(mesh.devices.reshape(sizes), names)


def is_explicit(mesh: Any) -> bool:
    """Return whether types of arrays say their shardings along some axis of a mesh."""
    from jax.sharding import AxisType

    return any(type_ == AxisType.Explicit for type_ in mesh.axis_types)


def sharding_over(
    mesh: Any, program: ProgramPlacement, placement: PortPlacement, devices: Sequence[Any], memory: str | None
) -> Any:
    """Return the `jax.sharding.NamedSharding` of an argument or result; dimensions of uneven parts are whole.

    Args:
        mesh: The mesh of JAX with the axes of the program's.
        program: The placement of the program.
        placement: That of the argument or result.
        devices: The devices by the numbers that meshes give them.
        memory: The memory; None for that of the device.
    """
    import jax

    port = placement.port
    sharding = None if port.sharding is None else _even(port.sharding, placement)
    if sharding is None or not port.mesh.axes:
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(), memory_kind=memory)
    is_in_order = tuple(devices_of(port.mesh)) == tuple(program.device_order)
    if not is_in_order and not has_view(placement):
        # JAX takes the devices of one program in one order.
        spec = jax.sharding.PartitionSpec(*placement.boundary_spec)
        return jax.sharding.NamedSharding(mesh_over(program, mesh), spec, memory_kind=memory)
    parts = parts_of_axes(port.mesh, sharding)
    axes = tuple((part.name, part.size) for axis in port.mesh.axes for part in parts[axis.name])
    if port.mesh != program.mesh or axes != uncut_axes(port.mesh):
        mesh = make_mesh(port.mesh, devices, axes)
    spec = jax.sharding.PartitionSpec(*partition_spec(sharding, parts))
    return jax.sharding.NamedSharding(mesh, spec, memory_kind=memory)


def _even(sharding: TensorSharding, placement: PortPlacement) -> TensorSharding:
    pairs = zip(placement.padded_shape, placement.port.type.shape, strict=True)
    dims = tuple(
        dim if padded == size else DimensionSharding()
        for dim, (padded, size) in zip(sharding.dim_shardings, pairs, strict=False)
    )
    return evolve(sharding, dim_shardings=dims, unreduced_axes=(), replicated_axes=())


def copies_in_order(placement: ProgramPlacement) -> Copies:
    """Return the partitions of the devices where the partitions are the coordinates of the program's mesh."""
    order = list(placement.device_order)
    return (tuple(order.index(device) for device in range(len(order))),)


def copies_in_context(placement: ProgramPlacement, context: Any) -> Copies:
    """Return the partitions of the devices where the mesh of the context has other axes, too.

    Each coordinate along the other axes runs the program.

    Args:
        placement: The placement of the program.
        context: The abstract mesh of the context.
    """
    sizes = dict(zip(context.axis_names, context.axis_sizes, strict=True))
    strides, stride = {}, 1
    for name in reversed(context.axis_names):
        strides[name], stride = stride, stride * sizes[name]
    program_axes = [name for name, size in placement.axes if size > 1]
    others = [name for name in context.axis_names if name not in program_axes]
    order = list(placement.device_order)

    def offsets(names: Sequence[str]) -> list[int]:
        ranges = [range(0, sizes[name] * strides[name], strides[name]) for name in names]
        return [sum(digits) for digits in product(*ranges)]

    inner = offsets(program_axes)
    return tuple(tuple(base + inner[order.index(device)] for device in range(len(order))) for base in offsets(others))


def free_axes(placement: ProgramPlacement, context: Any) -> tuple[str, ...]:
    """Return the axes of the context that no ``shard_map`` around the call has; the program's must be among them.

    Args:
        placement: The placement of the program.
        context: The abstract mesh of the context.

    Raises:
        UnsupportedError: they are not.
    """
    sizes = dict(zip(context.axis_names, context.axis_sizes, strict=True))
    program_axes = ", ".join(f"{name}={size}" for name, size in placement.axes)
    for name, size in placement.axes:
        if size > 1 and (sizes.get(name) != size or name in context.manual_axes):
            used = ", ".join(context.manual_axes) or "none"
            message = (
                f"the program is over the axes {program_axes}, and the mesh of the context has {sizes}, of which "
                f"a shard_map around the call uses {used}"
            )
            hint = "propagate the program over the axes that are free there, without parts of axes"
            raise UnsupportedError(Diagnostic("mesh-conflict", message, hint=hint))
    return tuple(name for name in context.axis_names if name not in context.manual_axes)
