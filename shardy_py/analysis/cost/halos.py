"""Halos: the elements at the bounds of shards that windows read from the neighbours.

As in XLA's spmd_partitioner_util.cc::ExchangeHalo between neighbours: a device sends all from the bound of its shard to
the last element that the neighbour reads. And ::ExchangeHaloCompact between devices that are further apart: it sends
each part of its shard to those that read it.
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


_MASK_SIDE, _MASK_BOTH = 3, 5
"""Operations per element: its place, whether that is padding at one side or at one of both, and a selection."""


def masked_operations(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> float:
    """Return the operations that put padding in its place in shards with their halos.

    As in XLA's spmd_partitioner_util.cc::ExchangeHaloAndGetValidData, one dimension after the other.
    """
    found, shapes = 0.0, {window.operand: list(sizes.shape(op.operands[window.operand])) for window in windows}
    for window in windows:
        operand, dim = op.operands[window.operand], window.operand_dim
        whole, part = static_shape(operand.type), shapes[window.operand]
        if not whole or not part or part[dim] == whole[dim]:
            continue
        count, out_part = -(-whole[dim] // part[dim]), sizes.shape(op.results[0])[window.result_dim]
        reach = (count * out_part - 1) * window.stride - window.low + window.size
        span = -(-((out_part - 1) * window.stride + window.size) // window.dilation)
        if window.is_padded and not _is_gathered(window, part[dim], out_part, count):
            sides = (window.low > 0) + (reach > (whole[dim] - 1) * window.dilation + 1)
            found += (0, _MASK_SIDE, _MASK_BOTH)[sides] * prod(part) / part[dim] * span
        part[dim] = span
    return found


def _is_gathered(window: Window, part: int, out_part: int, count: int) -> bool:
    """Return whether shards reach so far that all of them are gathered and sliced instead, without a mask."""
    step, held = out_part * window.stride, part * window.dilation
    left = max(shard * (held - step) + window.low for shard in (1, count - 1))
    right = max((shard + 1) * (step - held) + window.size - window.stride - window.low for shard in (0, count - 2))
    return left + right + held >= held * count and max(left, right) > held


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
    """Yield the most elements that a shard gets of another one, for each distance between the two."""
    read: dict[int, int] = {}
    reached: dict[int, int] = {}
    for shard in range(count):
        first = shard * out_part * window.stride - window.low
        last = ((shard + 1) * out_part - 1) * window.stride - window.low + window.size - 1
        low = max(0, -(-first // window.dilation))
        high = min(size - 1, last // window.dilation)
        for other in range(low // part, high // part + 1) if low <= high else ():
            distance, begin, end = other - shard, max(low, other * part), min(high + 1, (other + 1) * part)
            read[distance] = max(read.get(distance, 0), end - begin)
            to_bound = (other + 1) * part - begin if distance < 0 else end - other * part
            reached[distance] = max(reached.get(distance, 0), to_bound)
    found = reached if max(map(abs, read), default=0) <= 1 else read
    yield from (found[distance] for distance in sorted(found) if distance)
