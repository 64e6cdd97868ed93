"""Groups of devices as axes of a mesh: ``#stablehlo.replica_group_mesh_axes``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from shardy_dialects.stablehlo.mesh_references import ReplicaGroupMesh
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import Groups
from shardy_py.sharding.axes import AxisRef, SubAxis, quote
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import replica_groups, shard_positions
from shardy_py.sharding.tensor import symbol

_REF = r'axis_ref<name = "([^"]*)"(?:, sub_axis_info = [^<]*<pre_size = (\d+), size = (\d+)>)?'


def group_axes(groups: Groups, mesh: Mesh) -> tuple[str, ...] | None:
    """Return the axes of a mesh along which the devices of each group differ, major first; None for other groups.

    >>> group_axes(((0, 2, 1, 3),), Mesh.of(x=2, y=2))
    ('y', 'x')
    >>> group_axes(((0, 1), (3, 2)), Mesh.of(x=2, y=2)) is None
    True
    """
    if mesh.total_size != sum(map(len, groups)):
        return None
    changes: dict[str, int] = {}
    for axis in mesh.axes:
        positions = shard_positions(mesh, [AxisRef(axis.name)])
        # In the order of a group the minor axis changes most often.
        changes[axis.name] = sum(positions[left] != positions[right] for left, right in pairwise(groups[0]))
    names = sorted((name for name, count in changes.items() if count), key=changes.__getitem__)
    return tuple(names) if replica_groups(mesh, [AxisRef(name) for name in names]) == groups else None


def mesh_groups(groups: Groups, meshes: Mapping[str, Mesh]) -> RawAttribute | None:
    """Return the attribute for groups that are axes of a mesh of the program, None for others.

    Mirrors convert_global_to_local.cc::getReplicaGroupsV3.

    Args:
        groups: The groups.
        meshes: The meshes by name.
    """
    for name, mesh in meshes.items():
        axes = group_axes(groups, mesh)
        if axes:
            refs = ", ".join(f"#stablehlo.axis_ref<name = {quote(axis)}>" for axis in axes)
            return RawAttribute(f"#stablehlo.replica_group_mesh_axes<mesh = {symbol(name)}, axes = [{refs}]>")
    return None


def read_mesh_groups(op: Op) -> Groups | None:
    """Return the groups of a collective that has them as axes of a mesh, None for another one."""
    found = ReplicaGroupMesh().get_mesh(op)
    mesh = op.program.meshes.get(found) if isinstance(found, str) else found
    if mesh is None:
        return None
    refs = re.findall(_REF, str(op.attributes["replica_groups"]))
    return replica_groups(
        mesh,
        [AxisRef(name, SubAxis(int(before), int(size)) if size else None) for name, before, size in refs],
    )
