"""The kernels of views and of constants: each is charged to the uses of its result, by the shards that these need.

Several uses share one kernel, and each pays an equal part. Uses that need other shards have kernels of their own in the
program, so that together they never pay more than the estimator charges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from math import prod
from typing import Any

from attrs import field

from shardy_py.cost.estimates import formulas
from shardy_py.ir.graph.program import Op
from shardy_py.plans.fused_parts import part_of_bytes
from shardy_py.plans.graph import Dims, Placement, PlanGraph
from shardy_py.plans.prices import Prices
from shardy_py.plans.solve import numpy
from shardy_py.plans.strategies import numbers_of, placement_of, through
from shardy_py.values import define, frozen


@frozen
class KernelShare:
    """A part of a kernel that a use pays.

    Args:
        dims: For each dimension of the operand that of the kernel's result, or None for one that was added.
        size: The bytes of the kernel's result, or those of the operand if these are fewer.
        part: The part of the kernel's time.
        divided: The part of the kernel that is divided by the shards of the result; all devices divide the rest.
    """

    dims: Dims
    size: float
    part: float
    divided: float


@define(eq=False)
class ViewKernels:
    """The kernels of views and constants in a program.

    Attributes:
        prices: The prices.
        shares: Node and operand to what the use pays, with seconds of the unsharded program.
        returned: Node to the seconds of its views that the program returns.
    """

    prices: Prices
    shares: dict[tuple[int, int], list[tuple[KernelShare, float]]] = field(factory=lambda: defaultdict(list))
    returned: dict[int, float] = field(factory=lambda: defaultdict(float))

    @classmethod
    def of(cls, graph: PlanGraph, prices: Prices) -> ViewKernels:
        """Return the kernels of a graph."""
        kernels, counts, uses = cls(prices), Counter[int](), []
        for node in graph.nodes:
            for number in range(len(node.operands)):
                for op, dims in _with_kernels(graph.trails.get(node.operands[number], ()), prices):
                    counts[op.id] += 1
                    uses.append(((node.number, number), op, dims))
        returned = [
            (graph.node_of[graph.views[value][0]], op)
            for value, _ in graph.returned()
            if value in graph.views
            for op, _ in _with_kernels(graph.trails.get(value, ()), prices)
        ]
        counts.update(op.id for _, op in returned)
        for node_number, op in returned:
            kernels.returned[node_number] += (prices.kernels[op.id].seconds or 0.0) / counts[op.id]
        for use, op, dims in uses:
            slot = graph.session.problem.slot_of.get(op.results[0].id, -1)
            kernel, size = prices.kernels[op.id], graph.bytes(slot)
            read = (graph.session.problem.slot_of.get(operand.id, -1) for operand in op.operands)
            divided = part_of_bytes(kernel, size + sum(map(graph.bytes, read))) if prices.is_strict else 1.0
            # What is sent may be what later views make of the result.
            size = min(size, graph.bytes(graph.nodes[use[0]].operands[use[1]]))
            kernels.shares[use].append((KernelShare(dims, size, 1 / counts[op.id], divided), kernel.seconds or 0.0))
        return kernels

    def divided_seconds(self, node: int, operand: int) -> float:
        """Return the seconds of the unsharded program that a use pays and shards divide."""
        return sum(seconds * share.part * share.divided for share, seconds in self.shares.get((node, operand), ()))

    def all_seconds(self, share: KernelShare, kernel: float, needs: Any) -> Any:
        """Return what a use pays that needs a placement of its operand, by rows of placements."""
        np = numpy()
        numbers = numbers_of(needs, int(needs.max(initial=0)) + 1)
        _, examples, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        distinct = [self._seconds(share, kernel, placement_of(needs[row])) for row in examples.tolist()]
        return np.array(distinct)[inverse.reshape(-1)]

    def _seconds(self, share: KernelShare, kernel: float, need: Placement) -> float:
        placement = through(need, share.dims)
        least = self.prices.divided(kernel, self.prices.shards(placement), share.divided)
        if self.prices.is_strict:
            least = min([least, *self._gathered(share, kernel, placement)])
        return least * share.part

    def _gathered(self, share: KernelShare, kernel: float, placement: Placement) -> Iterable[float]:
        """Yield the times where devices compute less of the result, and gather the rest."""
        prices, shards = self.prices, self.prices.shards(placement)
        free = [axis for axis, dim in enumerate(placement) if dim is None]
        for count in range(1, len(free) + 1):
            for axes in combinations(free, count):
                parts = shards * prod(prices.axes[axis][1] for axis in axes)
                seconds = self.prices.divided(kernel, parts, share.divided)
                yield seconds + formulas.all_gather_seconds(prices.parts(axes), share.size / parts)


def _with_kernels(trail: Iterable[tuple[Op, Dims]], prices: Prices) -> list[tuple[Op, Dims]]:
    return [(op, dims) for op, dims in trail if op.id in prices.kernels]
