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
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.values import frozen

THREADS = 128
TILE_ALIGNMENT = 16
"""The alignment of tiles in shared memory, in bytes."""
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


def loop_unroll(elements: int, device: DeviceSpec, *, bits: int, blocked: bool = False) -> int:
    """Return the elements per thread of a loop.

    Args:
        elements: The number of elements.
        device: The device.
        bits: The bits of an element; those of less than a byte come at least in bytes.
        blocked: Whether the fusion has an op that makes each element expensive.
    """
    unroll = gcd(elements, 4) if elements >= device.threads and not blocked else 1
    return max(unroll, 8 // bits) if bits < 8 else unroll


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


def shared_tile_bytes(elements: int, element_type: str) -> int:
    """Return the bytes of shared memory that a tile takes; its elements are whole bytes, its begin is aligned.

    Args:
        elements: The number of its elements.
        element_type: Their type, in MLIR's notation.

    >>> shared_tile_bytes(33, "f32"), shared_tile_bytes(33, "i4")
    (144, 48)
    """
    size = elements * -(-bits_of(element_type) // 8)
    return -(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT
