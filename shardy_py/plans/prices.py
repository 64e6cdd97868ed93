"""Prices of strategies and resharding in seconds: one list of likely ones, and a strict one for the bound.

The likely prices are those of the estimator for the op alone. The strict ones leave out what the compiler may save:
of all-reduces, which it combines up to a size, each has the part of a latency that it has of that size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import prod

from attrs import field

from shardy_py.cost.estimates import formulas
from shardy_py.cost.estimates.values import OpCost
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import LinkPart, MeshPlacement
from shardy_py.cost.machines.profile import Profile
from shardy_py.plans.fused_parts import part_of_node
from shardy_py.plans.graph import Placement, PlanGraph, PlanNode
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import define

_SummedAxis = tuple[int, int | None, int | None]
"""An axis, the factor that it is on, and the dimension along which the sum is scattered, or None."""
_SumKey = tuple[float, tuple[_SummedAxis, ...]]
"""The bytes of partial results on a device, and the axes that are summed over."""


@define(eq=False)
class Prices:
    """Prices of a program on a machine, in seconds.

    Attributes:
        machine: The machine.
        mesh: The mesh.
        placement: How the mesh lies on the machine.
        axes: The axes that have more than one device, with their sizes, in the order of the mesh.
        kernels: Op id to the cost of its kernels in the unsharded program.
        profile: The rules of the compiler.
        is_strict: Whether these are prices for a bound.
    """

    machine: Machine
    mesh: Mesh
    placement: MeshPlacement
    axes: tuple[tuple[str, int], ...]
    kernels: dict[int, OpCost]
    profile: Profile
    is_strict: bool = False
    _parts_of_nodes: dict[int, float] = field(factory=dict, init=False)
    _parts: dict[tuple[int, ...], tuple[LinkPart, ...]] = field(factory=dict, init=False)
    _reshards: dict[tuple[Placement, Placement, float], float] = field(factory=dict, init=False)
    _sums: dict[_SumKey, tuple[float, float, float]] = field(factory=dict, init=False)

    def shards(self, placement: Iterable[int | None]) -> int:
        """Return the number of parts that a placement makes of a tensor."""
        return prod(size for (_, size), dim in zip(self.axes, placement, strict=True) if dim is not None)

    @property
    def devices(self) -> int:
        """The number of devices of all axes."""
        return prod(size for _, size in self.axes)

    def part(self, graph: PlanGraph, node: PlanNode) -> float:
        """Return the part of a node's kernel that is divided by the shards of the node; likely prices take all."""
        if not self.is_strict or node.op is None:
            return 1.0
        if node.number not in self._parts_of_nodes:
            self._parts_of_nodes[node.number] = part_of_node(graph, node, self.kernels[node.op.id], self.kernels)
        return self._parts_of_nodes[node.number]

    def divided(self, seconds: float, shards: int, part: float) -> float:
        """Return the time of a kernel of which one part is divided by shards, and the rest by all devices."""
        return seconds * (part / shards + (1 - part) / self.devices)

    def parts(self, axes: Iterable[int]) -> tuple[LinkPart, ...]:
        """Return the links that axes run over."""
        key = tuple(axes)
        if key not in self._parts:
            self._parts[key] = self.placement.parts((AxisRef(self.axes[axis][0]) for axis in key), self.mesh)
        return self._parts[key]

    def kernel_seconds(
        self, graph: PlanGraph, node: PlanNode, factors: tuple[int | None, ...], out: Placement
    ) -> float:
        """Return the time of a kernel when axes are on factors: its work divided, or the shards that it reads."""
        assert node.op is not None, "arguments have no kernel"
        assert node.rule is not None, "arguments have no kernel"
        kernel = self.kernels.get(node.op.id)
        if kernel is None or not kernel.seconds:
            return 0.0
        rule, shards = node.rule, self.shards(factors)
        if len(node.live) < 2 or not rule.reduction_factors or rule.need_replication_factors:
            return self.divided(kernel.seconds, shards, self.part(graph, node))
        # A product: operands that an axis does not shard are read whole by each device of the axis.
        read = written = 0.0
        for number in node.live:
            inside = {factor for dim in rule.operand_mappings[number] for factor in dim}
            read_factors = [factor if factor in inside else None for factor in factors]
            size = graph.bytes(node.operands[number])
            read, written = read + size / self.shards(read_factors), written + size
        size = graph.bytes(node.results[0])
        read, written = read + size / self.shards(out), written + size
        peak = self.machine.peak(graph.element_type(node.results[0]))[0]
        operations = (kernel.flops + kernel.transcendentals) / peak / shards
        return max(operations, min(1.0, kernel.bytes / written) * read / self.machine.memory_bandwidth)

    def reduction_seconds(
        self, factors: tuple[int | None, ...], summed: dict[int, int | None], size: float, base: Placement
    ) -> tuple[float, float, float]:
        """Return the time to sum partial results, the latency that may be saved, and the part of it that is counted.

        Args:
            factors: For each axis the factor that it is on.
            summed: The axes that are summed over, to the dimension along which the sum is scattered, or None.
            size: The bytes of the result.
            base: The placement of the partial results.
        """
        if not summed:
            return 0.0, 0.0, 0.0
        key = size / self.shards(base), tuple((axis, factors[axis], dim) for axis, dim in summed.items())
        if key not in self._sums:
            self._sums[key] = self._reduction_seconds(*key)
        return self._sums[key]

    def _reduction_seconds(self, local: float, summed: tuple[_SummedAxis, ...]) -> tuple[float, float, float]:
        seconds = latency = counted = 0.0
        scattered: dict[int | None, list[int]] = defaultdict(list)
        for axis, factor, dim in summed:
            if dim is not None:
                scattered[factor].append(axis)
        for axes in scattered.values():
            each = local
            local /= prod(self.axes[axis][1] for axis in axes)
            together = formulas.reduce_scatter_seconds(self.parts(axes), local)
            apart = 0.0
            for axis in axes if self.is_strict else ():
                each /= self.axes[axis][1]
                apart += formulas.reduce_scatter_seconds(self.parts((axis,)), each)
            seconds += min(together, apart) if self.is_strict else together
        reduced: dict[int | None, list[int]] = defaultdict(list)
        for axis, factor, dim in summed:
            if dim is None:
                reduced[factor].append(axis)
        for axes in reduced.values():
            seconds += formulas.all_reduce_seconds(self.parts(axes), local)
            if self.is_strict and local < self.profile.combined_bytes:
                saved = formulas.all_reduce_seconds(self.parts(axes), 0)
                latency, counted = latency + saved, counted + saved * local / self.profile.combined_bytes
        return seconds - latency + counted, latency, counted

    def reshard_seconds(self, have: Placement, need: Placement, size: float) -> float:
        """Return the time to bring a tensor from one placement to another: slice, all-to-all, permute, gather."""
        key = (have, need, size)
        if key not in self._reshards:
            self._reshards[key] = self._reshard_seconds(have, need, size)
        return self._reshards[key]

    def _reshard_seconds(self, have: Placement, need: Placement, size: float) -> float:
        local, seconds, is_permuted = size / self.shards(have), 0.0, False
        numbers = range(len(self.axes))
        moved: dict[tuple[int, int], list[int]] = defaultdict(list)
        gathered = []
        for axis in numbers:
            source, target = have[axis], need[axis]
            minor = [other for other in numbers if other > axis]
            if source is None and target is not None:
                local /= self.axes[axis][1]
                is_permuted |= any(have[other] == target and need[other] == target for other in minor)
            elif source is not None and target is None:
                gathered.append(axis)
                is_permuted |= any(need[other] == source and have[other] == source for other in minor)
            elif source is not None and target is not None and source != target:
                moved[source, target].append(axis)
        for axes in moved.values():
            seconds += formulas.all_to_all_seconds(self.parts(axes), local)
        if is_permuted and not self.is_strict:
            used = [axis for axis in numbers if have[axis] is not None or need[axis] is not None]
            seconds += formulas.permute_seconds(self.parts(used), local)
        if gathered:
            seconds += formulas.all_gather_seconds(self.parts(gathered), local)
        return seconds
