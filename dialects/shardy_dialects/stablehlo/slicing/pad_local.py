"""The local form of a pad: each shard pads its own part, after a halo exchange where elements move to other devices.

Mirrors convert_global_to_local.cc, the pattern of stablehlo.pad.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.footprints import DilatedReads, fetch_footprint, with_gaps
from shardy_dialects.stablehlo.local.windows import cut_dims, cut_of
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import CannotLocalize, Shard, no_local_form
from shardy_py.values import frozen


@frozen
class _Edges:
    """The padding of each part of one dimension.

    Args:
        lows: The low padding of each part.
        highs: The high padding of each part.
    """

    lows: Sequence[int]
    highs: Sequence[int]

    @property
    def are_equal(self) -> bool:
        """True if all parts have the same padding."""
        return len(set(self.lows)) == 1

    @property
    def low(self) -> int:
        """The low padding that is enough for all parts."""
        return max(self.lows)

    @property
    def high(self) -> int:
        """The high padding that is enough for all parts."""
        return max(self.highs)


def localize_pad(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the padded shard, with elements of other devices where padding moves them."""
    last = shard.emit.block.last
    try:
        return _padded_alone(op, shard)
    except CannotLocalize:
        shard.emit.erase_after(last)
    return _padded_with_neighbors(op, shard)


def _padded_with_neighbors(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the padded shard: along sharded dimensions each device fetches the elements that its part reads."""
    value, fill = shard.operands
    writer = Writer(shard.emit, shard.ops)
    low, high = list(op.attributes["edge_padding_low"]), list(op.attributes["edge_padding_high"])
    interior, cuts = list(op.attributes["interior_padding"]), cut_dims(shard)
    for dim in range(len(low)):
        if dim not in cuts and not interior[dim]:
            # What negative padding cuts off need not move.
            value = writer.padded(value, dim, min(low[dim], 0), min(high[dim], 0))
            low[dim], high[dim] = max(low[dim], 0), max(high[dim], 0)
    for dim in cuts:
        cut, part = cut_of(shard, dim), shard.result_shape()[dim]
        starts = [position * part - low[dim] for position in range(cut.parts)]
        footprint = DilatedReads(starts, part, interior[dim] + 1)
        fetched = fetch_footprint(cut, value, dim, cut.runs(0), footprint, fill)
        value = with_gaps(fetched, writer, dim, fill)
        low[dim] = high[dim] = interior[dim] = 0
    changes = {
        "edge_padding_low": tuple(low),
        "edge_padding_high": tuple(high),
        "interior_padding": tuple(interior),
    }
    if not any((*low, *high, *interior)):
        return [value]
    return [shard.emit.op_like(op, [value, fill], [shard.result_type()], changes).result]


def _padded_alone(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the padded shard; where parts differ, more padding than needed and then the part of it."""
    sharding = shard.result_shardings[0]
    low, high = list(op.attributes["edge_padding_low"]), list(op.attributes["edge_padding_high"])
    interior = op.attributes["interior_padding"]
    padded = list(shard.result_shape())
    tables: list[Sequence[int] | None] = [None] * len(padded)
    for dim in () if sharding is None else shard.sharded_dims(sharding):
        parts = shard.parts(sharding, dim)
        if shard.parts(shard.operand_shardings[0], dim) != parts:
            raise no_local_form(f"dimension {dim} of the operand and the result have different numbers of parts")
        size = shard.operands[0].shape[dim]
        if size * parts != op.operands[0].shape[dim]:
            raise no_local_form(f"dimension {dim} of the operand does not divide into {parts} equal parts")
        edges = _edges_of_parts(dim, parts, size, padded[dim], low[dim], interior[dim])
        low[dim], high[dim] = edges.low, edges.high
        if not edges.are_equal and sharding is not None:
            padded[dim] = edges.low + edges.high + _extent(size, interior[dim])
            tables[dim] = [edges.low - edges.lows[position] for position in shard.positions(sharding, dim)]
    changes = {"edge_padding_low": tuple(low), "edge_padding_high": tuple(high)}
    if not any(tables):
        return shard.copy(**changes)
    type_ = shard.result_type()
    if not isinstance(type_, TensorType):
        raise no_local_form("the result is not a tensor")
    wide = shard.emit.op_like(op, shard.operands, [TensorType(tuple(padded), type_.element_type)], changes).result
    starts = [shard.ops.offset(shard.emit, table) for table in tables]
    return [shard.ops.dynamic_slice(shard.emit, wide, starts, shard.result_shape())]


def _edges_of_parts(dim: int, parts: int, size: int, padded: int, low: int, interior: int) -> _Edges:
    """Return the padding of the parts of a dimension.

    Args:
        dim: The dimension.
        parts: The number of parts.
        size: The size of each part.
        padded: The size of each part of the result.
        low: The low padding of the whole.
        interior: The interior padding.
    """
    step = interior + 1
    lows = [low + part * (size * step - padded) for part in range(parts)]
    highs = [padded - low_of_part - _extent(size, interior) for low_of_part in lows]
    # The last element of the part before, and the first one of the part behind, must lie outside of the result.
    if size == 0:
        return _Edges(lows, highs)
    if any(low_of_part - step >= 0 for low_of_part in lows[1:]) or any(
        low_of_part + size * step < padded for low_of_part in lows[:-1]
    ):
        raise no_local_form(f"dimension {dim} is sharded, and its padding moves elements to other devices")
    return _Edges(lows, highs)


def _extent(size: int, interior: int) -> int:
    """Return the size of a dimension with gaps between its elements."""
    return (size - 1) * (interior + 1) + 1 if size else 0
