"""A value that one device of each group has, sent to the others in as few rounds as possible."""

from __future__ import annotations

from shardy_dialects.stablehlo.local.windows import Cut
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import tensor


def spread_from(value: Value, cut: Cut, owner: int) -> Value:
    """Return what one device has, on all devices that have the parts of a dimension.

    All that have it already send it on, so that twice as many have it after each round.

    Args:
        value: The value, which counts on the devices of the owner only.
        cut: The dimension.
        owner: The part whose devices have it.
    """
    writer, shard = Writer(cut.shard.emit, cut.shard.ops), cut.shard
    reached = 1
    while reached < cut.parts:
        count = min(reached, cut.parts - reached)
        steps = [((owner + place) % cut.parts, (owner + reached + place) % cut.parts) for place in range(count)]
        pairs = sorted((group[source], group[target]) for group in cut.groups for source, target in steps)
        arrived = shard.ops.collective_permute(shard.emit, value, pairs)
        targets = {target for _, target in steps}
        flags = cut.by_device([int(part in targets) for part in range(cut.parts)])
        flag = writer.convert(shard.ops.offset(shard.emit, flags), "i1")
        mask = writer.spread(flag, tensor(*value.shape, dtype="i1"))
        value = shard.emit.op("stablehlo.select", [mask, arrived, value], [value.type]).result
        reached += count
    return value
