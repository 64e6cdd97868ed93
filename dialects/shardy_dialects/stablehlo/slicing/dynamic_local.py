"""Local forms of dynamic slices and updates: starts clamp against the whole, and each device writes what it has."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_dialects.stablehlo.local.indices import (
    clamped,
    is_inside,
    on_device,
    place_among_zeros,
    summed,
    with_zeros_around,
)
from shardy_dialects.stablehlo.local.known_integers import known_integers
from shardy_dialects.stablehlo.local.windows import Cut, WindowFetcher, cut_dims, cut_of
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.combiner import Combiner


def localize_dynamic_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a dynamic slice: of sharded dimensions all that the device has, or what it has of the slice.

    The start of a dimension that is taken whole is 0, whatever it holds.
    """
    sizes, sharding, result = list(op.attributes["slice_sizes"]), shard.operand_shardings[0], shard.result_shardings[0]
    cuts: list[Cut] = []
    scattered: list[Cut] = []
    full_dims: list[int] = []
    for dim in cut_dims(shard):
        if sizes[dim] == op.operands[0].shape[dim] and shard.parts(sharding, dim) == shard.parts(result, dim):
            sizes[dim] = shard.operands[0].shape[dim]
            full_dims.append(dim)
        elif sharding is not None and shard.parts(result, dim) == 1:
            cuts.append(Cut(shard, sharding, dim))
        elif shard.parts(sharding, dim) > 1:
            scattered.append(cut_of(shard, dim))
        else:
            raise no_local_form(f"dimension {dim} of the result is sharded and not taken whole")
    shard = evolve(shard, operands=_from_zero(op, shard, 1, full_dims))
    if not cuts and not scattered:
        return shard.copy(slice_sizes=tuple(sizes))
    value = _looked_up(shard, [*cuts, *scattered], sizes)
    for cut in scattered:
        value = _scattered(shard, value, cut)
    return summed(shard, value, cuts) if cuts else [value]


def _from_zero(op: Op, shard: Shard, count: int, dims: Sequence[int]) -> list[Value]:
    """Return the operands of an op with starts of 0 in some dimensions.

    XLA adds up the starts of a slice of a slice, and forgets that those outside of the operand are clamped.

    Args:
        op: The op.
        shard: Its operands on the device.
        count: The number of operands before the starts.
        dims: The dimensions.
    """
    operands, writer = list(shard.operands), Writer(shard.emit, shard.ops)
    for dim in dims:
        if splat_of(op.operands[count + dim]) != 0:
            operands[count + dim] = writer.integer(0, operands[count + dim])
    return operands


def _looked_up(shard: Shard, cuts: Sequence[Cut], sizes: Sequence[int]) -> Value:
    """Return what the device has of a slice along sharded dimensions, with zeros in the place of all else."""
    writer = Writer(shard.emit, shard.ops)
    value, starts = shard.operands[0], [writer.convert(start, "i64") for start in shard.operands[1:]]
    for cut in cuts:
        value = with_zeros_around(shard, writer, value, cut.dim, sizes[cut.dim])
        starts[cut.dim] = place_among_zeros(writer, starts[cut.dim], cut, sizes[cut.dim])
    return shard.ops.dynamic_slice(shard.emit, value, starts, sizes)


def _scattered(shard: Shard, value: Value, cut: Cut) -> Value:
    """Return the part of the device of the sum of what the devices have along a dimension.

    Raises:
        CannotLocalize: sums are written elsewhere.
    """
    if shard.is_resolved:
        raise no_local_form(f"dimension {cut.dim} of the result is sharded and not taken whole")
    size = shard.result_shape()[cut.dim] * cut.parts
    even = [size if dim == cut.dim else length for dim, length in enumerate(value.shape)]
    part = shard.ops.resize(shard.emit, value, even)
    return shard.ops.reduce_scatter(shard.emit, part, cut.dim, cut.groups, Combiner.ADD)


def localize_dynamic_update_slice(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of the device with that part of the update that falls into it."""
    sizes = op.operands[1].shape
    dims = [dim for dim in cut_dims(shard) if sizes[dim] != op.operands[0].shape[dim]]
    if not dims:
        return shard.copy()
    writer = Writer(shard.emit, shard.ops)
    value, update = shard.operands[:2]
    operands = _from_zero(op, shard, 2, [dim for dim in cut_dims(shard) if dim not in dims])
    starts = [writer.convert(start, "i64") for start in operands[2:]]
    masks: list[tuple[int, Value]] = []
    for dim in dims:
        update, starts[dim], mask = _local_update(writer, cut_of(shard, dim), update, starts[dim])
        masks.append((dim, mask))
    # What is replaced and not updated stays as it is.
    current = shard.ops.dynamic_slice(shard.emit, value, starts, update.shape)
    for dim, mask in masks:
        update = writer.select(mask, dim, update, current)
    return [shard.emit.op_like(op, [value, update, *starts], [shard.result_type()]).result]


def _local_update(writer: Writer, cut: Cut, update: Value, start: Value) -> tuple[Value, Value, Value]:
    """Return elements of an update that may fall into the part of the device, where they begin, and which do fall.

    Args:
        writer: Where the ops go.
        cut: The dimension.
        update: The update.
        start: The coordinate where it begins, before it is clamped.
    """
    op, dim, part = cut.shard.op, cut.dim, cut.shard.operands[0].shape[cut.dim]
    full_size, size = op.operands[0].shape[dim], op.operands[1].shape[dim]
    known = known_integers(op.operands[2 + dim])
    if known is not None:
        first = min(max(known[0], 0), full_size - size)
        return _placed_update(writer, cut, update, first)
    if cut.shard.parts(cut.shard.operand_shardings[1], dim) > 1:
        raise no_local_form(f"dimension {dim} of the update is sharded, and it is not known where it goes")
    place = on_device(writer, clamped(writer, start, full_size - size), cut, part)
    wide = min(size, part)
    begin = clamped(writer, place, part - wide)
    skipped = writer.binary("subtract", begin, place)
    # The elements of the update from the skipped ones on, with any others where it has ended.
    low = writer.binary("add", skipped, writer.scalar(str(wide), "i64"))
    piece = writer.dynamic_part(writer.padded(update, dim, wide, wide), dim, low, wide)
    numbers = writer.binary("add", writer.counter(wide), writer.spread(skipped, tensor(wide, dtype="i64")))
    return piece, begin, is_inside(writer, numbers, size)


def _placed_update(writer: Writer, cut: Cut, update: Value, first: int) -> tuple[Value, Value, Value]:
    """Return, for an update at a known coordinate, the elements for the whole part of the device."""
    size, part = cut.shard.op.operands[1].shape[cut.dim], cut.shard.operands[0].shape[cut.dim]
    offsets = [position * part - first for position in range(cut.parts)]
    piece = WindowFetcher(cut, cut.dim, part).fetch(update, cut.runs(1), offsets)
    lows = cut.by_device([-offset for offset in offsets])
    highs = cut.by_device([size - offset for offset in offsets])
    return piece, writer.scalar("0", "i64"), writer.mask(part, lows, highs)
