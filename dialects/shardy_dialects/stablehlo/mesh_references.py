"""Collectives whose replica groups are given as axes of a mesh: ``#stablehlo.replica_group_mesh_axes``."""

from __future__ import annotations

import re
from struct import iter_unpack
from typing import Any

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import MeshReferenceOpInterface, OpDefinition
from shardy_py.sharding.axes import quote
from shardy_py.sharding.mesh import Mesh, MeshAxis
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
        found = re.search(_NAME, text) or re.search(_INLINED, text)
        if found:
            new = f"mesh = {symbol(mesh) if isinstance(mesh, str) else _mesh_text(mesh)}"
            op.attributes[REPLICA_GROUPS] = RawAttribute(text[: found.start()] + new + text[found.end() :])


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


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the mesh reference of a collective."""
    return {"mesh_reference": ReplicaGroupMesh()} if definition.name.removeprefix("stablehlo.") in OPS else {}
