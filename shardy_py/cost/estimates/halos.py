"""Halos: the elements at the bounds of shards that windows read from the neighbours.

As in XLA's spmd_partitioner_util.cc::ExchangeHaloAndGetValidData, one dimension after the other: between neighbours a
device sends all from the bound of its shard to the last element that another one reads, and what lies outside of the
tensor is masked; see `shardy_py.cost.estimates.window_exchange`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from shardy_py.cost.estimates.resharded import is_sliced_from_whole
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.estimates.window_exchange import Reach
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.costs import Window
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen


@frozen
class Halo:
    """Elements that each device gets from others along one dimension.

    Args:
        operand: The number of the operand.
        bytes: The bytes, at most.
        axes: The axes of the dimension.
        mesh: The mesh.
        is_gathered: Whether it gets all that the others have.
    """

    operand: int
    bytes: int
    axes: tuple[AxisRef, ...]
    mesh: Mesh
    is_gathered: bool


def halo_operations(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> float:
    """Return the operations that put padding in its place in shards with their halos, and choose between halos."""
    found = 0.0
    for window, row, reach in _divided(op, windows, sizes):
        found += row * reach.exchange.selected
        if window.is_padded:
            found += row * reach.mask_operations * reach.span
    return found


def halos_of(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> Iterator[Halo]:
    """Yield the halos of an op, those of one dimension one after the other."""
    for window, row, reach in _divided(op, windows, sizes):
        operand = op.operands[window.operand]
        sharding = sizes.sharding(operand)
        mesh = None if sharding is None else sizes.mesh(sharding)
        if sharding is None or mesh is None:
            continue
        width = sizes.bytes(operand) // max(1, prod(sizes.shape(operand)))
        axes, exchange = sharding.dim_shardings[window.operand_dim].axes, reach.exchange
        for elements in exchange.sent:
            yield Halo(window.operand, elements * row * width, axes, mesh, exchange.is_gathered)


def _divided(op: Op, windows: tuple[Window, ...], sizes: LocalSizes) -> Iterator[tuple[Window, int, Reach]]:
    """Yield windows along sharded dimensions, the elements of a row across these, with their halos, and the reach."""
    if all(window.is_padded and _is_whole(op, window, sizes) for window in windows):
        return
    shapes = {window.operand: list(sizes.shape(op.operands[window.operand])) for window in windows}
    out, out_parts = static_shape(op.results[0].type), sizes.shape(op.results[0])
    for window in windows:
        operand, dim = op.operands[window.operand], window.operand_dim
        sharding, whole, part = sizes.sharding(operand), static_shape(operand.type), shapes[window.operand]
        mesh = None if sharding is None else sizes.mesh(sharding)
        if sharding is None or mesh is None or mesh.is_maximal or not whole or not out:
            continue
        count = axes_size(sharding.dim_shardings[dim].axes, mesh)
        out_part = out_parts[window.result_dim]
        if count == 1 or out_part == out[window.result_dim]:
            continue
        reach = Reach(window, whole[dim], part[dim], out_part, count)
        yield window, prod(part[:dim]) * prod(part[dim + 1 :]), reach
        part[dim] = reach.span


def _is_whole(op: Op, window: Window, sizes: LocalSizes) -> bool:
    """Return whether each device has all that a window reads, and slices its part of it for the op."""
    return is_sliced_from_whole(op.operands[window.operand], (window.operand_dim,), sizes)
