"""PortPlacement of the arguments and results of a local program over one mesh of JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from shardy_py.jax.local.port import Port
from shardy_py.jax.named_shardings import Part, cut_axes, parts_in
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import axes_of_parts, devices_of, shard_positions
from shardy_py.values import frozen

_ONE_DEVICE = "device"
"""The axis of the mesh of one device, which JAX wants to have one."""


@frozen
class PortPlacement:
    """Placement of the shards of an argument or a result.

    Args:
        port: The argument or result.
        spec: The entries of its ``PartitionSpec``; None where no axes of the mesh give devices its parts.
        addends: For each coordinate of the mesh, which one of the parts that combine to the value the device has; empty
            where the value is not unreduced.
        starts: For each coordinate of the mesh, where the part of the device begins along each dimension.
    """

    port: Port
    spec: tuple[Any, ...] | None
    addends: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of parts along each dimension."""
        sharding = self.port.sharding
        rank = len(self.port.shard_shape)
        if sharding is None:
            return (1,) * rank
        return tuple(sharding.of_dimension(dim).sharded_size(self.port.mesh) for dim in range(rank))

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The shape of the array whose equal parts are the shards."""
        return tuple(size * count for size, count in zip(self.port.shard_shape, self.grid, strict=True))

    @property
    def boundary_spec(self) -> tuple[Any, ...]:
        """The entries of the ``PartitionSpec`` of the array outside, where JAX wants equal parts."""
        pairs = zip(self.padded_shape, self.port.type.shape, strict=True)
        is_even = [padded == size for padded, size in pairs]
        spec = self.spec or ()
        return tuple(entry if even else None for entry, even in zip(spec, is_even, strict=False))


@frozen
class ProgramPlacement:
    """PortPlacement of a program over a mesh whose axes are cut where shardings have parts of them.

    Args:
        mesh: The mesh of the program.
        axes: The names and the sizes of the axes of JAX's mesh.
        arguments: The placements of the arguments.
        results: The placements of the results.
    """

    mesh: Mesh
    axes: tuple[tuple[str, int], ...]
    arguments: tuple[PortPlacement, ...]
    results: tuple[PortPlacement, ...]

    @property
    def is_cut(self) -> bool:
        """True if JAX's mesh has other axes than that of the program."""
        return self.axes != tuple((axis.name, axis.size) for axis in self.mesh.axes)

    @property
    def device_order(self) -> Sequence[int]:
        """The number of the device at each coordinate, in row-major order."""
        return devices_of(self.mesh) if self.mesh.axes else (0,)


def place_program(mesh: Mesh, arguments: Sequence[Port], results: Sequence[Port]) -> ProgramPlacement:
    """Return the placement of a program over a mesh.

    Args:
        mesh: The mesh, over all devices of the program.
        arguments: The arguments.
        results: The results.
    """
    ports = (*arguments, *results)
    on_mesh = [_axes_on(mesh, port) for port in ports]
    used = [axis for dims in on_mesh for axes in dims or () for axis in axes]
    parts = cut_axes(mesh, used)
    axes = tuple((part.name, part.size) for axis in mesh.axes for part in parts[axis.name])
    placed = tuple(_place(mesh, parts, port, dims) for port, dims in zip(ports, on_mesh, strict=True))
    count = len(arguments)
    return ProgramPlacement(mesh, axes or ((_ONE_DEVICE, 1),), placed[:count], placed[count:])


def _place(
    mesh: Mesh, parts: Mapping[str, Sequence[Part]], port: Port, dims: Sequence[Sequence[AxisRef]] | None
) -> PortPlacement:
    spec = None
    if dims is not None:
        spec = tuple(_entry([part.name for axis in axes for part in parts_in(axis, parts[axis.name])]) for axes in dims)
    return PortPlacement(port, spec, _addends(mesh, port), _starts(mesh, port))


def _addends(mesh: Mesh, port: Port) -> tuple[int, ...]:
    if port.reduction_op is None:
        return ()
    devices = devices_of(mesh)
    addends = port.addends(len(devices))
    return tuple(addends[device] for device in devices)


def _starts(mesh: Mesh, port: Port) -> tuple[tuple[int, ...], ...]:
    devices = devices_of(mesh) if mesh.axes else (0,)
    columns = []
    for dim, size in enumerate(port.shard_shape):
        axes = () if port.sharding is None else port.sharding.of_dimension(dim).axes
        positions = shard_positions(port.mesh, axes) if axes else [0] * len(devices)
        columns.append([positions[device] * size for device in devices])
    return tuple(tuple(column[number] for column in columns) for number in range(len(devices)))


def _entry(names: Sequence[str]) -> Any:
    return names[0] if len(names) == 1 else tuple(names) or None


def _axes_on(mesh: Mesh, port: Port) -> list[tuple[AxisRef, ...]] | None:
    """Return the axes of a mesh along which devices have the parts of a port, per dimension; None where none do."""
    if port.sharding is None or not port.mesh.axes:
        return [() for _ in port.shard_shape]
    dims = [port.sharding.of_dimension(dim).axes for dim in range(len(port.shard_shape))]
    if port.mesh == mesh:
        return [tuple(axes) for axes in dims]
    axes_per_dim = [axes_of_parts(mesh, shard_positions(port.mesh, axes)) for axes in dims]
    known = [axes for axes in axes_per_dim if axes is not None]
    pairs = combinations([axis for axes in known for axis in axes], 2)
    is_possible = len(known) == len(axes_per_dim) and all(
        not one.overlaps(other) and one.can_coexist(other) for one, other in pairs
    )
    return known if is_possible else None
