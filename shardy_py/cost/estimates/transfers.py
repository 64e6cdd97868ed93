"""Ops that move data between devices, with the cost of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from attrs import field

from shardy_py.api.summary import tensor_bytes
from shardy_py.cost.estimates import formulas
from shardy_py.cost.estimates.device_groups import (
    AXES_ATTRIBUTES,
    LOCAL,
    WITHOUT_AXES,
    DeviceGroups,
    Group,
    combined_size,
    own_collective,
)
from shardy_py.cost.estimates.graph import Node, RuleOf
from shardy_py.cost.estimates.halos import Halo, halo_operations, halos_of, is_sliced_from_whole, reshards_before
from shardy_py.cost.estimates.merged_communications import Priced, combine, group_key
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.values import Transfer
from shardy_py.cost.machines.placement import MeshPlacement
from shardy_py.cost.machines.profile import NO_PROFILE, Profile
from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.op_names import (
    ALL_REDUCE,
    COLLECTIVE_PERMUTE,
)
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.costs import OwnCollective
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.local_ops import LocalCollective
from shardy_py.local.form_collectives import collectives_of_form
from shardy_py.local.local_ops import find_local_ops
from shardy_py.plugins import Registry
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_NAMES = frozenset((*AXES_ATTRIBUTES, *WITHOUT_AXES, *LOCAL))

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
_FORM = "the local form of the op sends it, as the program of a device does"
_WHOLE_REDUCE = "the backend makes no reduce-scatters: an all-reduce, of which each device keeps its part"
_MIRRORED = "the order of elements is reversed: each device sends its shard to the one at the mirrored place"
_GATHERED_HALO = "halo: the windows reach over nearly all, so that every device gets all shards"
_WIDENED = frozenset(("bf16", "i4", "ui4"))
_HALO = "halo: each device sends the elements at the bounds of its shard that the windows of a neighbour reach"


@frozen
class TransferPricer:
    """Prices the transfers of a program.

    Args:
        sizes: Measures values.
        registry: The definitions of ops.
        rule_of: Gives the rule of an op.
        placement: Where the meshes lie on a machine; None for no times.
        profile: The rules of the backend.
        mesh: The mesh of the devices that collectives of the program name; None where it has no shardings of them.
        local_ops: The ops for communication of a local program; None for any other.
    """

    sizes: LocalSizes
    registry: Registry
    rule_of: RuleOf
    placement: MeshPlacement | None
    profile: Profile = NO_PROFILE
    mesh: Mesh | None = None
    local_ops: LocalOps | None = None
    _memo: dict[tuple[object, ...], tuple[str, int, int, float | None]] = field(factory=dict, init=False, eq=False)
    groups: DeviceGroups = field(init=False, eq=False)
    # The search goes through the whole program.
    _form_ops: list[LocalOps | None] = field(factory=list, init=False, eq=False)

    @groups.default
    def _make_groups(self) -> DeviceGroups:
        return DeviceGroups(self.sizes, self.placement, self.mesh)

    def check_meshes(self) -> None:
        """Check that the meshes of all values seen fit the machine, whether something is sent along them or not.

        Raises:
            OptionError: one does not.
        """
        if self.placement is None:
            return
        for mesh in (*self.sizes.meshes, *(() if self.mesh is None else (self.mesh,))):
            self.placement.links_of(mesh)

    def price(self, node: Node) -> list[Priced]:
        """Return the transfers of an op: none, one, or one for each halo that its windows need.

        Raises:
            OptionError: a mesh does not fit the machine.
        """
        op = node.op
        if op.name in _NAMES:
            return [self._priced_sdy(node)]
        kind = node.kind
        if not kind.may_communicate and self.local_ops is None:
            return self._priced_form(node)
        if not kind.may_communicate:
            written = self._read_collective(op)
            return [] if written is None else [self._priced_own(node, written)]
        if kind.cost is None or not (
            kind.implements("get_collective") or kind.implements("get_windows") or kind.implements("get_mirrored_dims")
        ):
            return []
        if kind.implements("get_mirrored_dims"):
            return self._mirrored(node, kind.cost.get_mirrored_dims(op))
        collective = kind.cost.get_collective(op)
        if collective is None:
            windows = tuple(kind.cost.get_windows(op))
            return [self._halo(node, halo) for halo in halos_of(op, windows, self.sizes)] if windows else []
        return [self._priced_own(node, collective)]

    def masked(self, node: Node) -> float:
        """Return the number of operations that mask the padding in the windows of an op."""
        kind = node.kind
        windows = (
            () if kind.cost is None or not kind.implements("get_windows") else tuple(kind.cost.get_windows(node.op))
        )
        return halo_operations(node.op, windows, self.sizes) if windows else 0.0

    def combine(self, priced: list[Priced]) -> list[list[Priced]]:
        """Combine all-reduces of one section as the backend does; return those that become one."""
        return combine(priced, self.profile.combined_bytes, self._combined_seconds)

    def _priced_own(self, node: Node, collective: OwnCollective) -> Priced:
        """Return the transfer of a collective over groups of device numbers."""
        group = self.groups.of_numbers(collective)
        sent, seconds = self._priced(collective.kind, group, node.op)
        sent = round(sent * collective.share)
        transfer = self._transfer(
            node, collective.kind, group.axes, len(collective.group), sent, seconds, _HOW[collective.kind]
        )
        return Priced(node, transfer, group_key(node, str(collective.group), len(collective.group)))

    def _read_collective(self, op: Op) -> OwnCollective | None:
        """Return the collective that an op of a local program is, whatever its dialect says of costs."""
        collective = None if self.local_ops is None else self.local_ops.read_collective(op)
        return None if collective is None or not collective.groups else own_collective(collective, self.mesh)

    def _priced_form(self, node: Node) -> list[Priced]:
        """Return the transfers of the local form of an op whose dialect does not say what they are."""
        op, sizes = node.op, self.sizes
        rule = self.rule_of(op)
        # Nearly all ops move nothing along a dimension.
        if rule is None or not rule.permutation_factors:
            return []
        priced: list[Priced] = []
        operands, results = ([sizes.sharding(value) for value in values] for values in (op.operands, op.results))
        mesh = next((sizes.mesh(item) for item in (*operands, *results) if item is not None), None)
        local_ops = None if mesh is None else self._ops_for_forms(op.program)
        if mesh is None or local_ops is None:
            return []
        for written in collectives_of_form(op, operands, results, self.registry, local_ops):
            collective = own_collective(written, mesh)
            group = self.groups.of_numbers(collective, mesh)
            before, after = _bytes_around(written, group.devices)
            sent, seconds = formulas.PRICES[written.kind](group.devices, before, after, group.parts or ())
            sent, times = round(sent * collective.share), None if group.parts is None else seconds
            transfer = self._transfer(node, written.kind, group.axes, group.devices, sent, times, _FORM)
            halo = Halo(0, sent, (), mesh, is_gathered=written.kind == "all_gather", read_bytes=0)
            priced.append(Priced(node, transfer, halo=halo))
        return priced

    def _ops_for_forms(self, program: Program) -> LocalOps | None:
        """Return the ops with which local forms communicate; None where no dialect has any."""
        if not self._form_ops:
            try:
                self._form_ops.append(find_local_ops(program, self.registry))
            except UnsupportedError:
                self._form_ops.append(None)
        return self._form_ops[0]

    def _priced_sdy(self, node: Node) -> Priced:
        kind = node.op.name.removeprefix("sdy.")
        if kind == "reduce_scatter" and not self.profile.makes_reduce_scatters:
            kind, how = "all_reduce", _WHOLE_REDUCE
        else:
            how = _HOW[kind]
        axes, devices, sent, seconds = self._of_sdy(node.op, kind)
        transfer = self._transfer(node, kind, axes, devices, sent, seconds, how)
        return Priced(node, transfer, group_key(node, axes, devices))

    def _mirrored(self, node: Node, dims: Sequence[int]) -> list[Priced]:
        """Return the transfer of shards that change places, as in spmd_partitioner.cc::HandleReverse."""
        op = node.op
        sharding = self.sizes.sharding(op.results[0])
        mesh = None if sharding is None else self.sizes.mesh(sharding)
        if sharding is None or mesh is None or self._is_mirrored_before(op.operands[0], dims):
            return []
        axes = tuple(axis for dim in dims for axis in sharding.dim_shardings[dim].axes)
        group = self.groups.along(axes, mesh)
        sent, seconds = self._priced("collective_permute", group, op)
        if not sent:
            return []
        transfer = self._transfer(node, "collective_permute", group.axes, group.devices, sent, seconds, _MIRRORED)
        return [Priced(node, transfer)]

    def _is_mirrored_before(self, operand: Value, dims: Sequence[int]) -> bool:
        """Return whether shards change places as the operand is resharded, which sends no more than without that."""
        if any(step.name == COLLECTIVE_PERMUTE for step in reshards_before(operand)):
            return True
        return is_sliced_from_whole(operand, dims, self.sizes)

    def _halo(self, node: Node, halo: Halo) -> Priced:
        """Return the transfer of a halo."""
        axes = tuple(halo.axes)
        parts = None if self.placement is None else self.placement.parts(axes, halo.mesh)
        text = "{" + ", ".join(str(axis) for axis in axes) + "}"
        devices = combined_size(axes, halo.mesh)
        if halo.is_gathered:
            kind, how = "all_gather", _GATHERED_HALO
            seconds = None if parts is None else formulas.all_gather_seconds(parts, halo.bytes / max(1, devices - 1))
        else:
            kind, how = "collective_permute", _HALO
            seconds = None if parts is None else formulas.permute_seconds(parts, halo.bytes)
        transfer = self._transfer(node, kind, text, devices, halo.bytes, seconds, how, halo.operand)
        return Priced(node, transfer, halo=halo)

    def _transfer(
        self,
        node: Node,
        kind: str,
        axes: str,
        devices: int,
        sent: int,
        seconds: float | None,
        how: str,
        operand: int = 0,
    ) -> Transfer:
        tensor = str(node.op.operands[operand].type) if node.op.operands else ""
        return Transfer(
            node.op.id, kind, tensor, axes, devices, node.runs, sent, seconds, how, is_hoisted=node.is_hoisted
        )

    def _combined_seconds(self, item: Priced, sent: int) -> float | None:
        """Return the time of an all-reduce of more bytes than that of an item."""
        if item.transfer.seconds is None or self.placement is None:
            return None
        op = item.node.op
        before, after = self.sizes.sharding(op.operands[0]), self.sizes.sharding(op.results[0])
        cost = self.registry.get_cost(op)
        collective = cost.get_collective(op) if cost is not None else None
        group = self.groups.of_op(op, before, after) if collective is None else self.groups.of_numbers(collective)
        n = group.devices
        return formulas.all_reduce_seconds(group.parts or (), round(sent * n / (2 * (n - 1)))) if n > 1 else 0.0

    def _of_sdy(self, op: Op, kind: str) -> tuple[str, int, int, float | None]:
        before, after = self.sizes.sharding(op.operands[0]), self.sizes.sharding(op.results[0])
        attribute = op.attributes.get(AXES_ATTRIBUTES.get(op.name, ""))
        key: tuple[object, ...] = (op.name, kind, op.operands[0].type, before, after, attribute)
        if kind == "all_reduce" and op.name == ALL_REDUCE and self.profile.follows_results:
            key = (*key, *self._axes_by_dimension(op))
        if self.profile.widens_bfloat16:
            key = (*key, _is_widened(op.operands))
        cached = self._memo.get(key)
        if cached is None:
            group = self.groups.of_op(op, before, after)
            parts = [self._priced(kind, part, op) for part in self._runs(op, kind, before, after)]
            times = [seconds for _, seconds in parts if seconds is not None]
            seconds = sum(times) if len(times) == len(parts) else None
            cached = self._memo[key] = (group.axes, group.devices, sum(sent for sent, _ in parts), seconds)
        return cached

    def _runs(self, op: Op, kind: str, before: TensorSharding | None, after: TensorSharding | None) -> list[Group]:
        """Return the groups along which a collective runs, one run after the other.

        XLA's partitioner reduces along the axes of one dimension after the other (AllReduceAlongShardingDims).
        """
        group = self.groups.of_op(op, before, after)
        sharding = after or before
        mesh = None if sharding is None else self.sizes.mesh(sharding)
        if kind != "all_reduce" or op.name != ALL_REDUCE or not self.profile.follows_results or mesh is None:
            return [group]
        parts = [self.groups.along(axes, mesh) for axes in self._axes_by_dimension(op)]
        return parts if prod(part.devices for part in parts) == group.devices else [group]

    def _axes_by_dimension(self, op: Op) -> Iterator[tuple[AxisRef, ...]]:
        """Yield the axes of an all-reduce that shard one dimension of what its operand is made from."""
        reduced_axes = op.attributes[AXES_ATTRIBUTES[ALL_REDUCE]].axes
        maker = op.operands[0].defining_op
        axis_lists: dict[tuple[AxisRef, ...], None] = {}
        for value in () if maker is None else maker.operands:
            sharding = self.sizes.sharding(value)
            dims = () if sharding is None else sharding.dim_shardings
            axis_lists |= {
                axes: None for dim in dims if (axes := tuple(item for item in dim.axes if item in reduced_axes))
            }
        yield from axis_lists

    def _priced(self, kind: str, group: Group, op: Op) -> tuple[int, float | None]:
        """Return the bytes that one device sends, and the time."""
        before, after = self.sizes.total(op.operands), self.sizes.total(op.results)
        if self.profile.widens_bfloat16 and _is_widened(op.operands):
            before, after = 2 * before, 2 * after
        n = group.devices
        if n == 1 or kind not in formulas.PRICES:
            return 0, 0.0 if self.placement is not None else None
        sent, seconds = formulas.PRICES[kind](n, before, after, group.parts or ())
        return sent, seconds if group.parts is not None else None


def _bytes_around(collective: LocalCollective, devices: int) -> tuple[int, int]:
    """Return the bytes of a device before a collective and behind it."""
    after = tensor_bytes(collective.type, None, None) or 0
    if collective.kind == "all_gather":
        return after // devices, after
    return after * devices if collective.kind == "reduce_scatter" else after, after


def _is_widened(values: Iterable[Value]) -> bool:
    """Return whether values are sent in a type of twice their size: ``bf16`` in ``f32``, ``f8`` in ``f16``, ..."""
    types = (value.type.element_type for value in values if isinstance(value.type, TensorType))
    return any(name in _WIDENED or name.startswith("f8") for name in types)
