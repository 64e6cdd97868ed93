"""Collectives whose replica groups are axes of a mesh: ``#stablehlo.replica_group_mesh_axes``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from struct import iter_unpack

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import Groups
from shardy_py.plugins import MeshReferenceOpInterface
from shardy_py.sharding.axes import AxisRef, SubAxis, quote
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.shard_positions import replica_groups, shard_positions
from shardy_py.sharding.tensor import symbol

REPLICA_GROUPS = "replica_groups"


OPS = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")


_STRING = r'"((?:[^"\\]|\\.)*)"'


_NAME = rf"mesh = @(?:{_STRING}|([\w$.-]+))"


_INLINED = r"mesh = #stablehlo\.mesh<axes ?= ?\[(.*?)\](?:, device_ids ?= ?dense<(.*?)> : tensor<\w+>)?>"


_AXIS = rf"<name = {_STRING}, size = (\d+)>"


class ReplicaGroupMesh(MeshReferenceOpInterface):
    """The mesh of the replica groups, where they are given as axes of one."""

    def get_mesh(self, op: Op) -> str | Mesh | None:
        """Return the name of the mesh, or the mesh."""
        text = _replica_groups(op)
        name = re.search(_NAME, text)
        if name:
            return name[1] or name[2]
        inlined = re.search(_INLINED, text)
        if not inlined:
            return None
        axes = tuple(MeshAxis(name, int(size)) for name, size in re.findall(_AXIS, inlined[1]))
        return Mesh(axes, _numbers(inlined[2] or ""))

    def set_mesh(self, op: Op, mesh: str | Mesh) -> None:
        """Replace the mesh, keeping the axes."""
        text = _replica_groups(op)
        match = re.search(_NAME, text) or re.search(_INLINED, text)
        if match:
            new = f"mesh = {symbol(mesh) if isinstance(mesh, str) else _mesh_text(mesh)}"
            op.attributes[REPLICA_GROUPS] = RawAttribute(text[: match.start()] + new + text[match.end() :])


def _replica_groups(op: Op) -> str:
    groups = op.attributes.get(REPLICA_GROUPS)
    return groups.text if isinstance(groups, RawAttribute) else ""


def _numbers(text: str) -> tuple[int, ...]:
    """Return the elements of a dense attribute of 64-bit integers; MLIR prints many of them as one hex string."""
    if text.startswith('"0x'):
        return tuple(number for (number,) in iter_unpack("<q", bytes.fromhex(text[3:-1])))
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _mesh_text(mesh: Mesh) -> str:
    axes = ", ".join(f"#stablehlo.mesh_axis<name = {quote(axis.name)}, size = {axis.size}>" for axis in mesh.axes)
    devices = ", ".join(str(device) for device in mesh.device_ids)
    suffix = f", device_ids = dense<[{devices}]> : tensor<{len(mesh.device_ids)}xi64>" if mesh.device_ids else ""
    return f"#stablehlo.mesh<axes = [{axes}]{suffix}>"


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
    reference = ReplicaGroupMesh().get_mesh(op)
    mesh = op.program.meshes.get(reference) if isinstance(reference, str) else reference
    if mesh is None:
        return None
    refs = re.findall(_REF, str(op.attributes["replica_groups"]))
    return replica_groups(
        mesh,
        [AxisRef(name, SubAxis(int(before), int(size)) if size else None) for name, before, size in refs],
    )
