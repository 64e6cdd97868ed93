"""Halos: the elements at the bounds of shards that windows read from the neighbours.

As in XLA's spmd_partitioner_util.cc::ExchangeHalo, and ::ExchangeHaloCompact for neighbours that are far away: a device
sends each part of its shard to those that read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from shardy_py.analysis.cost.sizes import LocalSizes
from shardy_py.ir.costs import Window
from shardy_py.ir.graph import Op
from shardy_py.ir.types import static_shape
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen


@frozen
class Halo:
    """Elements that each device gets from the one at a certain distance along one dimension.

    Args:
        operand: The number of the operand.
        bytes: The bytes, at most.
        axes: The axes of the dimension.
        mesh: The mesh.
    """

    operand: int
    bytes: int
    axes: tuple[AxisRef, ...]
    mesh: Mesh


def halos_of(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> Iterator[Halo]:
    """Yield the halos of an op, those of one dimension one after the other."""
    for window in windows:
        operand, result = op.operands[window.operand], op.results[0]
        sharding = sizes.sharding(operand)
        mesh = None if sharding is None else sizes.mesh(sharding)
        shape, out = static_shape(operand.type), static_shape(result.type)
        if sharding is None or mesh is None or mesh.is_maximal or not shape or not out:
            continue
        axes = sharding.dim_shardings[window.operand_dim].axes
        count = axes_size(axes, mesh)
        part, out_part = sizes.shape(operand), sizes.shape(result)
        if count == 1 or out_part[window.result_dim] == out[window.result_dim]:
            continue
        row = sizes.bytes(operand) // max(1, prod(part)) * prod(part) // max(1, part[window.operand_dim])
        amounts = _exchanged(
            window, shape[window.operand_dim], part[window.operand_dim], out_part[window.result_dim], count
        )
        for elements in amounts:
            yield Halo(window.operand, elements * row, axes, mesh)


def _exchanged(window: Window, size: int, part: int, out_part: int, count: int) -> Iterator[int]:
    """Yield the most elements that a shard reads of another one, for each distance between the two."""
    found: dict[int, int] = {}
    for shard in range(count):
        first = shard * out_part * window.stride - window.low
        last = ((shard + 1) * out_part - 1) * window.stride - window.low + window.size - 1
        low = max(0, -(-first // window.dilation))
        high = min(size - 1, last // window.dilation)
        for other in range(low // part, high // part + 1) if low <= high else ():
            elements = min(high + 1, (other + 1) * part) - max(low, other * part)
            found[other - shard] = max(found.get(other - shard, 0), elements)
    yield from (found[distance] for distance in sorted(found) if distance)
