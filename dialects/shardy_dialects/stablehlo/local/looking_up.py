"""Elements at places that are known at run time, out of a tensor of which each device has a part.

A device pads its part with zeros on both sides, so that a window that lies outside holds zeros. Each element comes from
the one device that has it: the sum of all is the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.local.indices import clamped, on_device
from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer, resized
from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Combined, Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.shard_positions import replica_groups


def with_zeros_around(shard: Shard, writer: Writer, value: Value, dim: int, size: int) -> Value:
    """Return the part of the first operand that the device has, with zeros around it and in the place of padding.

    Args:
        shard: The op on one device.
        writer: Where the ops go.
        value: The part.
        dim: The dimension along which windows are looked up.
        size: The number of elements of a window.
    """
    sharding = shard.operand_shardings[0]
    if sharding is not None and dim in shard.padded_dims(0):
        count = shard.real_size(sharding, dim, shard.op.operands[0].shape[dim])
        value = shard.ops.mask(shard.emit, value, dim, count, writer.zero_like(value))
    return writer.padded(value, dim, size, size)


def place_among_zeros(writer: Writer, index: Value, cut: Cut, size: int) -> Value:
    """Return where windows begin in a part with zeros around it.

    Args:
        writer: Where the ops go.
        index: Where they begin in the whole dimension, as 64-bit integers; they clamp against it.
        cut: The dimension.
        size: The number of elements of a window.
    """
    part, whole = cut.shard.operands[0].shape[cut.dim], cut.shard.op.operands[0].shape[cut.dim]
    place = on_device(writer, clamped(writer, index, whole - size), cut, part)
    shift = writer.spread(writer.integer(size, place), resized(place, {}))
    return clamped(writer, writer.binary("add", place, shift), part + size)


def summed(shard: Shard, value: Value, cuts: Sequence[Cut]) -> Combined:
    """Return the sum of what the devices have that share the looked-up dimensions.

    Raises:
        CannotLocalize: sums are written elsewhere.
    """
    sharding = shard.operand_shardings[0]
    if sharding is None or shard.is_resolved:
        raise no_local_form("windows of several elements are looked up along a sharded dimension")
    axes = [axis for cut in cuts for axis in sharding.of_dimension(cut.dim).axes]
    groups = replica_groups(shard.mesh(sharding), axes)
    return Combined([shard.ops.all_reduce(shard.emit, value, groups, Combiner.ADD)])
