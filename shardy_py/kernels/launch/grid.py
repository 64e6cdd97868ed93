"""Blocks and threads of a kernel, and the maps from them to elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from shardy_py.indexing import (
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    dim,
    op_maps,
    simplify,
    symbol,
)
from shardy_py.indexing.composition import without_unused_symbols
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.fusion import IterationSpace
from shardy_py.values import frozen

THREADS = 128
GRID_NAMES = ("th_x", "th_y", "th_z", "bl_x", "bl_y", "bl_z")
TH_X, BL_X, BL_Y, BL_Z = 0, 3, 4, 5

Triple = tuple[int, int, int]


@frozen
class Launch:
    """The grid of a kernel.

    Args:
        blocks: The blocks along x, y and z.
        threads: The threads of a block, in the same order.
        unroll: The elements per thread and step.
    """

    blocks: Triple
    threads: Triple
    unroll: int = 1


def grid_bounds(launch: Launch) -> tuple[Bound, ...]:
    """Return the bounds of thread and block ids."""
    sizes = (*launch.threads, *launch.blocks)
    return tuple(Bound(Interval(0, size - 1), name) for size, name in zip(sizes, GRID_NAMES, strict=True))


def spread(steps: int, device: DeviceSpec, *, unroll: int = 1, threads: int = THREADS) -> Launch:
    """Return the launch of one thread per step.

    Args:
        steps: The number of steps.
        device: The device.
        unroll: The elements per step.
        threads: The most threads of a block.
    """
    threads = min(threads, steps)
    blocks = -(-steps // threads)
    x = min(blocks, device.blocks_x)
    return Launch((x, -(-blocks // x), 1), (threads, 1, 1), unroll)


def space_launch(space: IterationSpace, device: DeviceSpec) -> Launch:
    """Return the launch over an iteration space: a thread takes up to four neighbours where the device is full."""
    unroll = gcd(space.elements, 4) if space.elements >= device.threads and not space.is_expensive else 1
    unroll = gcd(max(unroll, 8 // space.bits), space.divisible)
    return spread(-(-space.elements // unroll), device, unroll=unroll)


def loop_map(launch: Launch, shape: Sequence[int], layout: Sequence[int] = ()) -> IndexingMap:
    """Return the map from threads, blocks and the unrolled loop to the index of an element.

    Args:
        launch: The grid.
        shape: The shape of the tensor.
        layout: Its dimensions, the one that varies fastest in memory first; by default row-major.

    >>> print(loop_map(Launch((2, 1, 1), (128, 1, 1)), (129,)))  # doctest: +ELLIPSIS
    (th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x * 128 + th_x), domain: th_x in [0, 127], ...
    """
    place = dim(BL_X) * launch.threads[0] + dim(TH_X)
    if launch.blocks[1] > 1:
        place = dim(BL_Y) * (launch.threads[0] * launch.blocks[0]) + place
    place = place * launch.unroll + symbol(0)
    order = tuple(layout)[::-1] or range(len(shape))
    index: list[Expression] = [Constant(0)] * len(shape)
    physical = [shape[number] for number in order]
    for number, size, stride in zip(order, physical, op_maps.strides_of(physical), strict=True):
        index[number] = place // stride % size
    ranges = (Bound(Interval(0, launch.unroll - 1)),)
    map_ = IndexingMap(tuple(index), grid_bounds(launch), ranges)
    bounded = map_.with_constraints([(place, Interval(0, prod(shape) - 1))])
    return without_unused_symbols(simplify(bounded))
