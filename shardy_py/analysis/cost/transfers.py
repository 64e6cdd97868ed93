"""Ops that move data between devices, with the cost of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest

from attrs import field, frozen

from shardy_py.analysis.cost import formulas
from shardy_py.analysis.cost.runs import Run
from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.analysis.cost.values import Transfer
from shardy_py.analysis.machine.placement import LinkPart, Placement
from shardy_py.ir.costs import OwnCollective
from shardy_py.ir.graph import Op
from shardy_py.ir.op_names import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, RESHARD
from shardy_py.plugins import Registry
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

AXES_ATTRIBUTES = {
    ALL_GATHER: "gathering_axes",
    "sdy.all_slice": "slicing_axes",
    "sdy.all_to_all": "params",
    ALL_REDUCE: "reduction_axes",
    REDUCE_SCATTER: "reduce_scatter_axes",
}
"""The attribute that holds the axes of each of Shardy's collectives."""

WITHOUT_AXES = ("sdy.collective_permute", RESHARD)
"""Its ops whose axes follow from the shardings before and after."""

LOCAL = ("sdy.replicated_to_unreduced", "sdy.sharded_to_unreduced")
"""Its ops that change what a device has of a value without asking another one."""

_NAMES = (*AXES_ATTRIBUTES, *WITHOUT_AXES, *LOCAL)

_HOW = {
    "all_gather": "ring: each device sends its shard on to all others of its group",
    "all_reduce": "ring: a reduce-scatter and an all-gather of what one device holds",
    "reduce_scatter": "ring: as an all-gather of the scattered shards, backwards",
    "all_to_all": "each device sends an equal part of its shard to each other one of its group",
    "collective_permute": "each device sends its shard to one other; where to does not matter",
    "collective_broadcast": "counted as a permutation: each device gets the value once",
    "all_slice": "each device keeps a part of what it has: nothing is sent",
    "reshard": "no collectives are known for it: counted as a permutation of the result",
    "replicated_to_unreduced": "nothing is sent: devices zero what others count",
    "sharded_to_unreduced": "nothing is sent: each device adds zeros around its shard",
}


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
class TransferPricer:
    """Prices the transfers of a program.

    Args:
        sizes: Measures values.
        registry: The definitions of ops.
        placement: Where the meshes lie on a machine; None for no times.
    """

    sizes: LocalSizes
    registry: Registry
    placement: Placement | None
    _memo: dict[tuple[object, ...], tuple[str, int, int, float | None]] = field(factory=dict, init=False, eq=False)

    def check_meshes(self) -> None:
        """Check that the meshes of all values seen fit the machine, whether something is sent along them or not.

        Raises:
            OptionError: one does not.
        """
        if self.placement is None:
            return
        for mesh in self.sizes.meshes:
            self.placement.links_of(mesh)

    def price(self, run: Run) -> Transfer | None:
        """Return the transfer of an op that moves data between devices, else None.

        Raises:
            OptionError: a mesh does not fit the machine.
        """
        op = run.op
        if op.name in _NAMES:
            kind = op.name.removeprefix("sdy.")
            axes, devices, sent, seconds = self._of_sdy(op, kind)
        else:
            cost = self.registry.get_cost(op)
            own = cost.get_collective(op) if cost is not None else None
            if own is None:
                return None
            kind, axes = own.kind, ""
            devices = len(own.group)
            sent, seconds = self._priced(kind, self._own_group(own), op)
        tensor = str(op.operands[0].type) if op.operands else ""
        return Transfer(op.id, kind, tensor, axes, devices, run.count, sent, seconds, _HOW[kind])

    def _of_sdy(self, op: Op, kind: str) -> tuple[str, int, int, float | None]:
        before, after = self.sizes.sharding(op.operands[0]), self.sizes.sharding(op.results[0])
        attribute = op.attributes.get(AXES_ATTRIBUTES.get(op.name, ""))
        key = (op.name, op.operands[0].type, before, after, attribute)
        found = self._memo.get(key)
        if found is None:
            group = self._sdy_group(op, before, after)
            found = self._memo[key] = (group.axes, group.devices, *self._priced(kind, group, op))
        return found

    def _priced(self, kind: str, group: Group, op: Op) -> tuple[int, float | None]:
        """Return the bytes that one device sends, and the time."""
        before, after = self.sizes.total(op.operands), self.sizes.total(op.results)
        n = group.devices
        if n == 1 or kind not in _PRICES:
            return 0, 0.0 if self.placement is not None else None
        sent, seconds = _PRICES[kind](n, before, after, group.parts or ())
        return sent, seconds if group.parts is not None else None

    def _sdy_group(self, op: Op, before: TensorSharding | None, after: TensorSharding | None) -> Group:
        meshes = [self.sizes.mesh(sharding) for sharding in (after, before) if sharding is not None]
        # Between a mesh and one of its devices the mesh decides.
        mesh = max((item for item in meshes if item is not None), key=lambda item: item.total_size, default=None)
        if mesh is None or op.name in LOCAL:
            return Group("", 1, () if self.placement is not None else None)
        axes = tuple(dict.fromkeys(_axes_of(op, before, after, mesh)))
        parts = self.placement.parts(axes, mesh) if self.placement is not None else None
        devices = formulas.group_size(parts) if parts is not None else _combined_size(axes, mesh)
        return Group("{" + ", ".join(str(axis) for axis in axes) + "}", devices, parts)

    def _own_group(self, own: OwnCollective) -> Group:
        if self.placement is None:
            return Group("", len(own.group), None)
        return Group("", len(own.group), tuple(_parts_of_group(own.group, self.placement)))


def _axes_of(op: Op, before: TensorSharding | None, after: TensorSharding | None, mesh: Mesh) -> Iterator[AxisRef]:
    """Yield the axes along which the devices of a group of one of Shardy's collectives differ."""
    name = AXES_ATTRIBUTES.get(op.name)
    if name is None:
        yield from _changed_axes(before, after, mesh)
        return
    attribute = op.attributes[name]
    if op.name == ALL_REDUCE:
        yield from attribute.axes
    elif op.name == "sdy.all_to_all":
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


def _combined_size(axes: Sequence[AxisRef], mesh: Mesh) -> int:
    """Return the number of devices along axes, of which one may be a part of another."""
    alone = [axis for axis in axes if not any(axis != other and other.contains(axis) for other in axes)]
    return axes_size(alone, mesh)


def _parts_of_group(group: Sequence[int], placement: Placement) -> Iterator[LinkPart]:
    """Yield the parts of links that a group of device numbers runs over."""
    stride = 1
    found = []
    for link in reversed(placement.machine.links):
        places = sorted({device // stride % link.size for device in group})
        if len(places) > 1:
            found.append(LinkPart(link, len(places), min(b - a for a, b in pairwise(places))))
        stride *= link.size
    yield from reversed(found)


_Parts = Sequence[LinkPart]


def _all_gather(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return (n - 1) * before, formulas.all_gather_seconds(parts, before)


def _reduce_scatter(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return (n - 1) * after, formulas.reduce_scatter_seconds(parts, after)


def _all_reduce(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return -(-2 * (n - 1) * before // n), formulas.all_reduce_seconds(parts, before)


def _all_to_all(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return -(-(n - 1) * before // n), formulas.all_to_all_seconds(parts, before)


def _permute(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return before, formulas.permute_seconds(parts, before)


def _reshard(n: int, before: int, after: int, parts: _Parts) -> tuple[int, float]:
    return after, formulas.permute_seconds(parts, after)


_PRICES: dict[str, Callable[[int, int, int, _Parts], tuple[int, float]]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "all_to_all": _all_to_all,
    "collective_permute": _permute,
    "collective_broadcast": _permute,
    "reshard": _reshard,
}
