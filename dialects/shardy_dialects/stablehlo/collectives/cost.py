"""Costs of collectives: the groups of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from shardy_dialects.stablehlo.collectives.mesh_axes import REPLICA_GROUPS, ReplicaGroupMesh
from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
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
    if isinstance(groups, DenseElements) and len(groups.shape) == 2:
        # A smaller group is filled up with -1.
        return tuple(device for device in groups.values[: groups.shape[1]] if device >= 0)
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


def _permuted(op: Op) -> tuple[int, ...]:
    pairs = op.attributes.get("source_target_pairs")
    return tuple(sorted(set(pairs.values))) if isinstance(pairs, DenseElements) else (0,)


def _sending_share(op: Op) -> float:
    """Return the part of the devices that send to another one in a permutation."""
    pairs = op.attributes.get("source_target_pairs")
    count = max((mesh.total_size for mesh in op.program.meshes.values()), default=0)
    if not isinstance(pairs, DenseElements) or not count:
        return 1.0
    values = list(pairs.values)
    senders = sum(source != target for source, target in zip(values[::2], values[1::2], strict=True))
    return min(1.0, senders / count)
