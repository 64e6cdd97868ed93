"""Costs of collectives: the groups of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from shardy_dialects.stablehlo.collectives.mesh_axes import REPLICA_GROUPS, ReplicaGroupMesh
from shardy_dialects.stablehlo.local.literals import read_dense
from shardy_py.ir.graph.attributes import Attribute, DenseElements, RawAttribute
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OwnCollective
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen

_AXIS_NAME = r'#stablehlo\.axis_ref<name = "([^"]*)"'


@frozen
class CollectiveCost(CostOpInterface):
    """A collective over groups of device numbers."""

    kind: str

    def get_collective(self, op: Op) -> OwnCollective | None:
        """Return the collective with its first group."""
        if self.kind == "collective_permute":
            return OwnCollective(self.kind, _permuted(op), _sending_share(op))
        return OwnCollective(self.kind, _first_group(op))


def _first_group(op: Op) -> tuple[int, ...]:
    groups = op.attributes.get(REPLICA_GROUPS)
    rows = _rows(groups)
    if rows:
        # A smaller group is filled up with -1.
        return tuple(device for device in rows[0] if device >= 0)
    if not isinstance(groups, RawAttribute):
        return (0,)
    named = ReplicaGroupMesh().get_mesh(op)
    mesh = named if isinstance(named, Mesh) or named is None else op.program.meshes.get(named)
    return (0,) if mesh is None else tuple(_devices(mesh, re.findall(_AXIS_NAME, groups.text)))


def _devices(mesh: Mesh, names: Sequence[str]) -> Iterator[int]:
    """Yield the devices of a mesh that have the first place along all axes but the given ones."""
    sizes = [axis.size if axis.name in names else 1 for axis in mesh.axes]
    strides = [prod(axis.size for axis in mesh.axes[index + 1 :]) for index in range(len(mesh.axes))]
    for place in product(*map(range, sizes)):
        number = sum(index * stride for index, stride in zip(place, strides, strict=True))
        yield mesh.device_ids[number] if mesh.device_ids else number


def _rows(table: Attribute) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a table of device numbers, as MLIR has it or as a local form writes it; () for others."""
    if isinstance(table, DenseElements) and len(table.shape) == 2:
        width = table.shape[1]
        return tuple(tuple(table.values[start : start + width]) for start in range(0, len(table.values), width or 1))
    if isinstance(table, RawAttribute) and table.text.startswith("dense<") and not table.text.startswith("dense<>"):
        return read_dense(table.text)
    return ()


def _permuted(op: Op) -> tuple[int, ...]:
    pairs = _rows(op.attributes.get("source_target_pairs"))
    return tuple(sorted({device for pair in pairs for device in pair})) or (0,)


def _sending_share(op: Op) -> float:
    """Return the part of the devices that send to another one in a permutation."""
    pairs = _rows(op.attributes.get("source_target_pairs"))
    count = max((mesh.total_size for mesh in op.program.meshes.values()), default=0)
    if not pairs or not count:
        return 1.0
    return min(1.0, sum(source != target for source, target in pairs) / count)
