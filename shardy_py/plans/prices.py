"""Prices of strategies and resharding in seconds: two lists of likely ones, and a strict one for the bound.

The likely prices are those of the estimator for the op alone. The strict ones leave out what the compiler may save:
of all-reduces, which it combines up to a size, each has the part of a latency that it has of that size. The second
list of likely prices does so, too, and leaves out nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from attrs import field

from shardy_py.cost.estimates import formulas
from shardy_py.cost.estimates.flops import element_type_of
from shardy_py.cost.estimates.values import OpCost
from shardy_py.cost.machines.machine import Machine
from shardy_py.cost.machines.placement import LinkPart, MeshPlacement
from shardy_py.cost.machines.profile import Profile
from shardy_py.plans.fused_parts import part_of_node
from shardy_py.plans.graph import Placement, PlanGraph, PlanNode
from shardy_py.plans.solve import numpy
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.split_partitioner_reshards import is_fully_rematerialized, sharding_between
from shardy_py.values import define

NONE = -1
"""Number in arrays for an axis that is on no factor, or shards no dimension."""
_SummedAxis = tuple[int, int, bool]
"""An axis, the factor that it is on, and whether the sum is scattered."""
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
        is_combined: Whether all-reduces that the compiler may combine have a part of their latency.
    """

    machine: Machine
    mesh: Mesh
    placement: MeshPlacement
    axes: tuple[tuple[str, int], ...]
    kernels: dict[int, OpCost]
    profile: Profile
    is_strict: bool = False
    is_combined: bool = False
    _parts_of_nodes: dict[int, float] = field(factory=dict, init=False)
    _runs_of_nodes: dict[int, float] = field(factory=dict, init=False)
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

    def runs(self, graph: PlanGraph, node: PlanNode) -> float:
        """Return how often a node runs, at least: more than once in a loop.

        An op without a kernel, which is fused into another one, runs as often as what it reads.
        """
        if node.op is None:
            return 1.0
        if node.number not in self._runs_of_nodes:
            kernel = self.kernels.get(node.op.id)
            if kernel is not None:
                runs = kernel.runs
            else:
                roots = (graph.views[node.operands[number]][0] for number in node.live)
                producers = (graph.nodes[graph.node_of[root]] for root in roots)
                runs = max(
                    (self.runs(graph, producer) for producer in producers if producer.place < node.place), default=1.0
                )
            self._runs_of_nodes[node.number] = runs
        return self._runs_of_nodes[node.number]

    def divided(self, seconds: float, shards: Any, part: float) -> Any:
        """Return the time, or times, of a kernel of which one part is divided by shards, the rest by all devices."""
        return seconds * (part / shards + (1 - part) / self.devices)

    def parts(self, axes: Iterable[int]) -> tuple[LinkPart, ...]:
        """Return the links that axes run over."""
        key = tuple(axes)
        if key not in self._parts:
            self._parts[key] = self.placement.parts((AxisRef(self.axes[axis][0]) for axis in key), self.mesh)
        return self._parts[key]

    def shard_counts(self, placements: Any) -> Any:
        """Return the number of parts that each row of placements, or of factors, makes."""
        sizes = numpy().array([size for _, size in self.axes], dtype=numpy().int64)
        return numpy().where(placements != NONE, sizes, 1).prod(axis=1)

    def divides(self, sizes: Sequence[int], rows: Any) -> Any:
        """Return where the axes on a dimension, or a factor, divide its size."""
        np = numpy()
        axes = np.array([size for _, size in self.axes], dtype=np.int64)
        is_divided = np.ones(len(rows), dtype=bool)
        for dim, size in enumerate(sizes):
            is_divided &= size % np.where(rows == dim, axes, 1).prod(axis=1) == 0
        return is_divided

    def kernel_seconds(self, graph: PlanGraph, node: PlanNode, factors: Any, outs: Any) -> Any:
        """Return the times of a kernel by rows of factors: its work divided, or the shards that it reads."""
        assert node.op is not None, "arguments have no kernel"
        assert node.rule is not None, "arguments have no kernel"
        kernel, np = self.kernels.get(node.op.id), numpy()
        if kernel is None or not kernel.seconds:
            return np.zeros(len(factors))
        rule, shards = node.rule, self.shard_counts(factors)
        if len(node.live) < 2 or not rule.reduction_factors or rule.need_replication_factors:
            return self.divided(kernel.seconds, shards, self.part(graph, node))
        # A product: operands that an axis does not shard are read whole by each device of the axis.
        read, written = np.zeros(len(factors)), 0.0
        for number in node.live:
            inside = sorted({factor for dim in rule.operand_mappings[number] for factor in dim})
            size = graph.bytes(node.operands[number])
            read = read + size / self.shard_counts(np.where(np.isin(factors, inside), factors, NONE))
            written += size
        size = graph.bytes(node.results[0])
        read, written = read + size / self.shard_counts(outs), written + size
        peak = self.machine.peak(element_type_of(node.op) or "")[0]
        operations = (kernel.flops + kernel.transcendentals) / peak / shards
        passes = min(kernel.runs, kernel.bytes / written)
        return np.maximum(operations, passes * read / self.machine.memory_bandwidth)

    def reduction_seconds(
        self, size: float, bases: Any, factors: Any, is_summed: Any, is_scattered: Any
    ) -> tuple[Any, Any, Any]:
        """Return the times to sum partial results, the latencies that may be saved, and the counted parts of these.

        Args:
            size: The bytes of the result.
            bases: The placements of the partial results.
            factors: The factors that axes are on.
            is_summed: The axes that are summed over.
            is_scattered: Those over which the sum is scattered.
        """
        np = numpy()
        seconds = np.zeros((len(bases), 3))
        rows = np.flatnonzero(is_summed.any(axis=1))
        shards = self.shard_counts(bases)
        # What is summed how, and over how many partial results, as one number.
        kinds = np.where(is_summed, 2 * (factors + 1) + is_scattered, 0)
        base = int(kinds.max(initial=0)) + 1
        keys = shards.copy()
        for axis in range(kinds.shape[1]):
            keys = keys * base + kinds[:, axis]
        _, examples, inverse = np.unique(keys[rows], return_index=True, return_inverse=True)
        distinct = []
        for row in rows[examples].tolist():
            axes = np.flatnonzero(is_summed[row]).tolist()
            summed = tuple((axis, int(factors[row, axis]), bool(is_scattered[row, axis])) for axis in axes)
            key = size / int(shards[row]), summed
            if key not in self._sums:
                self._sums[key] = self._reduction_seconds(*key)
            distinct.append(self._sums[key])
        if distinct:
            seconds[rows] = np.array(distinct)[inverse.reshape(-1)]
        return seconds[:, 0], seconds[:, 1], seconds[:, 2]

    def _reduction_seconds(self, local: float, summed: tuple[_SummedAxis, ...]) -> tuple[float, float, float]:
        seconds = latency = counted = 0.0
        scattered: dict[int, list[int]] = defaultdict(list)
        reduced: dict[int, list[int]] = defaultdict(list)
        for axis, factor, is_scattered in summed:
            (scattered if is_scattered else reduced)[factor].append(axis)
        for axes in scattered.values():
            each = local
            local /= prod(self.axes[axis][1] for axis in axes)
            together = formulas.reduce_scatter_seconds(self.parts(axes), local)
            apart = 0.0
            for axis in axes if self.is_strict else ():
                each /= self.axes[axis][1]
                apart += formulas.reduce_scatter_seconds(self.parts((axis,)), each)
            seconds += min(together, apart) if self.is_strict else together
        for axes in reduced.values():
            seconds += formulas.all_reduce_seconds(self.parts(axes), local)
            if self.is_combined and local < self.profile.combined_bytes:
                saved = formulas.all_reduce_seconds(self.parts(axes), 0)
                latency, counted = latency + saved, counted + saved * local / self.profile.combined_bytes
        return seconds - latency + counted, latency, counted

    def reshard_seconds(self, have: Placement, need: Placement, size: float) -> float:
        """Return the time to bring a tensor from one placement to another.

        The likely time is that of the partitioner of the profile, which gathers what it cannot exchange.
        """
        key = (have, need, size)
        if key not in self._reshards:
            between = None if self.is_strict or not self.profile.follows_results else self._between(have, need)
            if between is None:
                self._reshards[key] = self._reshard_seconds(have, need, size)
            else:
                gather, slice_ = self._reshard_seconds(have, between, size), self._reshard_seconds(between, need, size)
                self._reshards[key] = gather + slice_
        return self._reshards[key]

    def _between(self, have: Placement, need: Placement) -> Placement | None:
        """Return the placement that XLA's partitioner gathers to before it slices; None where it does not."""
        rank = 1 + max((dim for dim in (*have, *need) if dim is not None), default=-1)
        before, after = self.sharding(have, rank), self.sharding(need, rank)
        between = sharding_between(before, after, self.mesh)
        if between is not None:
            dims = {axis.name: dim for dim, item in enumerate(between.dim_shardings) for axis in item.axes}
            return tuple(dims.get(name) for name, _ in self.axes)
        is_whole = have != need and is_fully_rematerialized(before, after, self.mesh)
        return (None,) * len(self.axes) if is_whole else None

    def sharding(self, placement: Placement, rank: int, mesh_name: str = "mesh") -> TensorSharding:
        """Return the closed sharding of a placement."""
        axes: list[list[AxisRef]] = [[] for _ in range(rank)]
        for (name, _), dim in zip(self.axes, placement, strict=True):
            if dim is not None:
                axes[dim].append(AxisRef(name))
        return TensorSharding(mesh_name, tuple(DimensionSharding(tuple(names), is_closed=True) for names in axes))

    def _reshard_seconds(self, have: Placement, need: Placement, size: float) -> float:
        """Return the time of a slice, all-to-all, permutation and gather."""
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
