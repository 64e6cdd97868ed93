"""The groups of devices that collectives run over, with the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from shardy_py.cost.estimates import formulas
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.machines.placement import LinkPart, MeshPlacement
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
    REPLICATED_TO_UNREDUCED,
    RESHARD,
    SHARDED_TO_UNREDUCED,
)
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.costs import OwnCollective
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import axes_of_group
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

AXES_ATTRIBUTES = {
    ALL_GATHER: "gathering_axes",
    ALL_SLICE: "slicing_axes",
    ALL_TO_ALL: "params",
    ALL_REDUCE: "reduction_axes",
    REDUCE_SCATTER: "reduce_scatter_axes",
}
"""The attribute that holds the axes of each of Shardy's collectives."""

WITHOUT_AXES = (COLLECTIVE_PERMUTE, RESHARD)
"""Its ops whose axes follow from the shardings before and after."""

LOCAL = (REPLICATED_TO_UNREDUCED, SHARDED_TO_UNREDUCED)
"""Its ops that change what a device has of a value without asking another one."""


@frozen
class Group:
    """The devices that take part in one group of a collective.

    Args:
        axes: The axes along which they differ, as text.
        devices: Their number.
        parts: The links between them; None without a machine.
    """

    axes: str
    devices: int
    parts: tuple[LinkPart, ...] | None


@frozen
class DeviceGroups:
    """Finds the groups of the collectives of a program.

    Args:
        sizes: Knows the shardings of values, and their meshes.
        placement: Where the meshes lie on a machine; None for no links.
        mesh: The mesh of the devices that collectives name by their numbers; None where there is none.
    """

    sizes: LocalSizes
    placement: MeshPlacement | None
    mesh: Mesh | None

    def of_op(self, op: Op, before: TensorSharding | None, after: TensorSharding | None) -> Group:
        """Return the group of one of Shardy's collectives."""
        meshes = [self.sizes.mesh(sharding) for sharding in (after, before) if sharding is not None]
        # Between a mesh and one of its devices the mesh decides.
        mesh = max((item for item in meshes if item is not None), key=lambda item: item.total_size, default=None)
        if mesh is None or op.name in LOCAL:
            return Group("", 1, () if self.placement is not None else None)
        return self.along(tuple(dict.fromkeys(_axes_of(op, before, after, mesh))), mesh)

    def along(self, axes: tuple[AxisRef, ...], mesh: Mesh) -> Group:
        """Return a group of the devices along axes."""
        parts = self.placement.parts(axes, mesh) if self.placement is not None else None
        devices = formulas.group_size(parts) if parts is not None else combined_size(axes, mesh)
        return Group("{" + ", ".join(str(axis) for axis in axes) + "}", devices, parts)

    def of_numbers(self, collective: OwnCollective, mesh: Mesh | None = None) -> Group:
        """Return the group of a collective over numbers of devices."""
        mesh = self.mesh if mesh is None else mesh
        axes = None if mesh is None or len(collective.group) < 2 else axes_of_group(mesh, collective.group)
        if axes and mesh is not None:
            return self.along(axes, mesh)
        if self.placement is None:
            return Group("", len(collective.group), None)
        return Group("", len(collective.group), tuple(_parts_of_group(collective.group, self.placement)))


def own_collective(collective: LocalCollective, mesh: Mesh | None) -> OwnCollective:
    """Return the group of a collective; of a permutation all devices that take part, and the share that sends."""
    if collective.kind != "collective_permute":
        return OwnCollective(collective.kind, collective.groups[0])
    devices = sorted({device for pair in collective.groups for device in pair})
    count = len(devices) if mesh is None else mesh.total_size
    moving = sum(source != target for source, target in collective.groups)
    return OwnCollective(collective.kind, tuple(devices), moving / count)


def _axes_of(op: Op, before: TensorSharding | None, after: TensorSharding | None, mesh: Mesh) -> Iterator[AxisRef]:
    """Yield the axes along which the devices of a group of one of Shardy's collectives differ."""
    name = AXES_ATTRIBUTES.get(op.name)
    if name is None:
        yield from _changed_axes(before, after, mesh)
        return
    attribute = op.attributes[name]
    if op.name == ALL_REDUCE:
        yield from attribute.axes
    elif op.name == ALL_TO_ALL:
        for param in attribute.params:
            yield from param.axes
    else:
        yield from attribute.axes()


def _changed_axes(before: TensorSharding | None, after: TensorSharding | None, mesh: Mesh) -> Iterator[AxisRef]:
    """Yield the axes of the dimensions that are sharded differently; all axes where the meshes differ."""
    if before is not None and after is not None and before.mesh != after.mesh:
        yield from (AxisRef(axis.name) for axis in mesh.axes)
        return
    old = before.dim_shardings if before is not None else ()
    new = after.dim_shardings if after is not None else ()
    for first, second in zip_longest(old, new):
        first_axes = first.axes if first is not None else ()
        second_axes = second.axes if second is not None else ()
        if first_axes != second_axes:
            yield from first_axes
            yield from second_axes


def combined_size(axes: Sequence[AxisRef], mesh: Mesh) -> int:
    """Return the number of devices along axes, of which one may be a part of another."""
    alone = [axis for axis in axes if not any(axis != other and other.contains(axis) for other in axes)]
    return axes_size(alone, mesh)


def _parts_of_group(group: Sequence[int], placement: MeshPlacement) -> Iterator[LinkPart]:
    """Yield the parts of links that a group of device numbers runs over."""
    stride = 1
    parts = []
    for link in reversed(placement.machine.links):
        places = sorted({device // stride % link.size for device in group})
        if len(places) > 1:
            parts.append(LinkPart(link, len(places), min(b - a for a, b in pairwise(places))))
        stride *= link.size
    yield from reversed(parts)
