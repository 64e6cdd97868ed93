"""Positions of the devices of a mesh along axes: their parts, replica groups, and permutation pairs.

Device ``mesh.device_ids[q]`` has the position q in row-major order; the first axis of a dimension is the major one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import TensorSharding


def devices_of(mesh: Mesh) -> Sequence[int]:
    """Return the device number at each position of a mesh."""
    return mesh.device_ids or range(mesh.total_size)


def shard_positions(mesh: Mesh, axes: Sequence[AxisRef]) -> list[int]:
    """Return, by device number, the number of the part that the device has of a dimension over these axes.

    >>> shard_positions(Mesh.of(x=2, y=2), [AxisRef("y"), AxisRef("x")])
    [0, 2, 1, 3]
    """
    devices = devices_of(mesh)
    result = [0] * (max(devices, default=0) + 1)
    for position, device in enumerate(devices):
        result[device] = _index(position, mesh, axes)
    return result


def axes_of_parts(mesh: Mesh, positions: Sequence[int]) -> tuple[AxisRef, ...] | None:
    """Return the axes along which each device has the part that a list says; None where no axes do that.

    Args:
        mesh: The mesh.
        positions: The number of the part of each device, by device number.

    >>> print(*axes_of_parts(Mesh.of(x=2, y=4), [0, 0, 1, 1, 0, 0, 1, 1]))
    "y":(1)2
    """
    count = max(positions, default=0) + 1
    axes: tuple[AxisRef, ...] = ()
    size = 1
    while size < count:
        longer = next(
            (
                (*axes, axis)
                for axis in _parts_of_axes(mesh)
                if count % (size * axis.size(mesh)) == 0
                and not any(axis.overlaps(other) or not axis.can_coexist(other) for other in axes)
                and shard_positions(mesh, (*axes, axis))
                == [number * size * axis.size(mesh) // count for number in positions]
            ),
            None,
        )
        if longer is None:
            return None
        size *= longer[-1].size(mesh)
        axes = longer
    return axes


def replica_groups(mesh: Mesh, axes: Sequence[AxisRef]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices that differ along these axes only, each in the order of the axes.

    >>> replica_groups(Mesh.of(x=2, y=2), [AxisRef("x")])
    ((0, 2), (1, 3))
    """
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for position, device in enumerate(devices_of(mesh)):
        # The position with the digits of the axes set to 0 is the same for all of a group.
        groups[_without(position, mesh, axes)].append((_index(position, mesh, axes), device))
    return tuple(tuple(device for _, device in sorted(group)) for group in groups.values())


def axes_of_group(mesh: Mesh, group: Sequence[int]) -> tuple[AxisRef, ...] | None:
    """Return the axes along which the devices of a group differ, in the order of the mesh; None for any other group.

    >>> print(*axes_of_group(Mesh.of(x=2, y=4), (0, 1, 4, 5)))
    "x" "y":(2)2
    """
    position_of = {device: position for position, device in enumerate(devices_of(mesh))}
    if not all(device in position_of for device in group):
        return None
    found = []
    for axis in mesh.axes:
        stride = _stride(mesh, AxisRef(axis.name))
        indices = sorted({position_of[device] // stride % axis.size for device in group})
        if len(indices) > 1:
            part = _part_of_axis(axis, indices)
            if part is None:
                return None
            found.append(part)
    return tuple(found) if prod(part.size(mesh) for part in found) == len(set(group)) else None


def _part_of_axis(axis: MeshAxis, indices: Sequence[int]) -> AxisRef | None:
    """Return the axis, or the part of it, along which some indices differ."""
    if len(indices) == axis.size:
        return AxisRef(axis.name)
    first, step, size = indices[0], indices[1] - indices[0], len(indices)
    is_even = list(indices) == [first + step * number for number in range(size)]
    if not is_even or axis.size % (step * size) or first // step % size:
        return None
    return AxisRef(axis.name, SubAxis(axis.size // (step * size), size))


def permutation_pairs(
    source: TensorSharding, source_mesh: Mesh, target: TensorSharding, target_mesh: Mesh
) -> list[tuple[int, int]]:
    """Return the pairs of devices that bring a tensor from one sharding to another with the same shard shapes.

    Devices that hold the same shard are paired in the order of their positions.
    """
    targets: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, device in enumerate(devices_of(target_mesh)):
        targets[_indices(position, target_mesh, target)].append(device)
    pairs = []
    for position, device in enumerate(devices_of(source_mesh)):
        pairs.append((device, targets[_indices(position, source_mesh, source)].pop(0)))
    return sorted(pairs)


def _parts_of_axes(mesh: Mesh) -> Iterator[AxisRef]:
    """Yield each axis and then the sub-axes of it, the largest first."""
    for axis in mesh.axes:
        if axis.size > 1:
            yield AxisRef(axis.name)
    for axis in mesh.axes:
        divisors = [number for number in range(axis.size, 0, -1) if axis.size % number == 0]
        for size in divisors[1:-1]:
            for before in divisors:
                if axis.size % (before * size) == 0:
                    yield AxisRef(axis.name, SubAxis(before, size))


def _indices(position: int, mesh: Mesh, sharding: TensorSharding) -> tuple[int, ...]:
    return tuple(_index(position, mesh, dim.axes) for dim in sharding.dim_shardings)


def _index(position: int, mesh: Mesh, axes: Sequence[AxisRef]) -> int:
    result = 0
    for axis in axes:
        result = result * axis.size(mesh) + position // _stride(mesh, axis) % axis.size(mesh)
    return result


def _without(position: int, mesh: Mesh, axes: Sequence[AxisRef]) -> int:
    for axis in axes:
        stride = _stride(mesh, axis)
        position -= position // stride % axis.size(mesh) * stride
    return position


def _stride(mesh: Mesh, axis: AxisRef) -> int:
    """Return the distance in positions between neighbours along an axis or a sub-axis."""
    number = [item.name for item in mesh.axes].index(axis.name)
    minor = prod(item.size for item in mesh.axes[number + 1 :])
    return minor * (mesh.axes[number].size // axis.next_pre_size(mesh))
