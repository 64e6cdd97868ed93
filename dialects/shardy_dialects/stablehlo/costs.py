"""Costs that do not follow from rules: the runs of regions, and the groups of collectives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from shardy_dialects.stablehlo.attributes import parse_enum
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.mesh_references import REPLICA_GROUPS, ReplicaGroupMesh
from shardy_dialects.stablehlo.work import works
from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import BranchCost, CostOpInterface, OpDefinition, OwnCollective
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen

KINDS = ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "reduce_scatter")
_AXIS_NAME = r'#stablehlo\.axis_ref<name = "([^"]*)"'


class WhileCost(CostOpInterface):
    """A loop that counts from a constant to a constant runs a known number of times."""

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the runs of the condition, one more than of the body, and those of the body."""
        trips = trip_count(op)
        return (None, None) if trips is None else (trips + 1, trips)


@frozen
class CollectiveCost(CostOpInterface):
    """A collective over groups of device numbers."""

    kind: str

    def get_collective(self, op: Op) -> OwnCollective | None:
        """Return the collective with its first group."""
        if self.kind == "collective_permute":
            return OwnCollective(self.kind, _permuted(op), _sending_share(op))
        return OwnCollective(self.kind, _first_group(op))


def trip_count(op: Op) -> int | None:
    """Return the number of runs of the body of a ``while``; None where constants do not give it."""
    condition, body = (region.blocks[0] for region in op.regions)
    end, next_ = condition.terminator, body.terminator
    compare = end.operands[0].defining_op if end is not None and end.operands else None
    if compare is None or next_ is None or compare.name != "stablehlo.compare":
        return None
    left, right = compare.operands
    direction = parse_enum(str(attribute(compare, "comparison_direction", "")))
    if left.owner is not condition:
        left, right, direction = right, left, _SWAPPED.get(direction, direction)
    if left.owner is not condition or direction not in _TRIPS:
        return None
    start, bound = _constant(op.operands[left.index]), _constant_in(op, right)
    step = _step(op, body.arguments[left.index], next_.operands[left.index])
    if start is None or bound is None or not step:
        return None
    return _TRIPS[direction](bound - start, step)


def _up_to(distance: int, step: int) -> int | None:
    return max(0, -(-distance // step)) if step > 0 else (0 if distance <= 0 else None)


def _equal(distance: int, step: int) -> int | None:
    trips, rest = divmod(distance, step)
    return trips if rest == 0 and trips >= 0 else None


_TRIPS: dict[str, Callable[[int, int], int | None]] = {
    "LT": _up_to,
    "LE": lambda distance, step: _up_to(distance + 1, step),
    "GT": lambda distance, step: _up_to(-distance, -step),
    "GE": lambda distance, step: _up_to(1 - distance, -step),
    "NE": _equal,
}
_SWAPPED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def _step(op: Op, argument: Value, yielded: Value) -> int | None:
    """Return the step by which each run of the body changes a carried value."""
    made = yielded.defining_op
    if made is None or made.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = made.operands
    if made.name == "stablehlo.subtract":
        amount = _constant_in(op, right) if left is argument else None
        return None if amount is None else -amount
    other = right if left is argument else left
    return _constant_in(op, other) if argument in (left, right) else None


def _constant_in(op: Op, value: Value) -> int | None:
    """Return the number that a value in a region of a loop always is: a constant, or carried along unchanged."""
    if not value.is_block_argument or value.owning_op is not op:
        return _constant(value)
    body = op.regions[1].blocks[0]
    end = body.terminator
    is_unchanged = end is not None and end.operands[value.index] is body.arguments[value.index]
    return _constant(op.operands[value.index]) if is_unchanged else None


def _constant(value: Value) -> int | None:
    made = value.defining_op
    elements = None if made is None or made.operands else attribute(made, "value")
    return elements.values[0] if isinstance(elements, DenseElements) and len(elements.values) == 1 else None


def _first_group(op: Op) -> tuple[int, ...]:
    groups = attribute(op, REPLICA_GROUPS)
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
    pairs = attribute(op, "source_target_pairs")
    return tuple(sorted(set(pairs.values))) if isinstance(pairs, DenseElements) else (0,)


def _sending_share(op: Op) -> float:
    """Return the part of the devices that send to another one in a permutation."""
    pairs = attribute(op, "source_target_pairs")
    count = max((mesh.total_size for mesh in op.program.meshes.values()), default=0)
    if not isinstance(pairs, DenseElements) or not count:
        return 1.0
    values = list(pairs.values)
    senders = sum(source != target for source, target in zip(values[::2], values[1::2], strict=True))
    return min(1.0, senders / count)


COSTS: dict[str, CostOpInterface] = {
    **works(),
    "while": WhileCost(),
    "case": BranchCost(),
    "if": BranchCost(),
    **{kind: CollectiveCost(kind) for kind in KINDS},
}


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the cost of an op."""
    cost = COSTS.get(definition.name.removeprefix("stablehlo."))
    return {} if cost is None else {"cost": cost}
