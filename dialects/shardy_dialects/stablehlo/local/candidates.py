"""Candidates of all devices, such as the largest element of each part, brought together row by row.

Each device gets the candidates of all others for a part of the rows, chooses there, and sends its choice to all:
for more than two devices this is less than all candidates of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Value
from shardy_py.ir.interfaces.local import Groups, Shard

Choose = Callable[[Sequence[Value]], Sequence[Value]]
"""Returns one row of choices for each row of candidates: of ``(devices, rows, k)`` tensors ``(rows, k)`` ones."""


def choose_among_all(shard: Shard, values: Sequence[Value], rank: int, groups: Groups, choose: Choose) -> list[Value]:
    """Return the choices among the candidates of all devices of a group.

    Args:
        shard: What emits ops.
        values: The candidates of the device, tensors of one shape.
        rank: The number of dimensions of the rows; the others are those of the candidates of a row.
        groups: The groups of devices.
        choose: Chooses for some rows.
    """
    writer, shape, count = Writer(shard.emit, shard.ops), tuple(values[0].shape), len(groups[0])
    rows, row = prod(shape[:rank]), prod(shape[rank:])
    flat = [writer.ops.reshape(writer.emit, value, (rows, row)) for value in values]
    if not is_spread(rows, count):
        joined = [writer.ops.reshape(writer.emit, value, (1, rows, row)) for value in flat]
        chosen = choose([writer.ops.all_gather(writer.emit, value, 0, groups) for value in joined])
        return [writer.ops.reshape(writer.emit, value, shape) for value in chosen]
    part = -(-rows // count)
    parts = []
    for value in flat:
        wide = writer.ops.resize(writer.emit, value, (part * count, row))
        split = writer.ops.reshape(writer.emit, wide, (count, part, row))
        parts.append(writer.ops.all_to_all(writer.emit, split, 0, 0, groups))
    results = []
    for value in choose(parts):
        gathered = writer.ops.all_gather(writer.emit, value, 0, groups)
        results.append(writer.ops.reshape(writer.emit, writer.ops.resize(writer.emit, gathered, (rows, row)), shape))
    return results


def is_spread(rows: int, count: int) -> bool:
    """Return whether each device chooses for a part of the rows; otherwise each chooses for all of them.

    Args:
        rows: The number of rows.
        count: The number of devices.
    """
    return 2 * -(-rows // count) < rows


def sent_candidates(rows: int, count: int) -> float:
    """Return how often a device sends the candidates of a row, on average.

    Args:
        rows: The number of rows.
        count: The number of devices.
    """
    return 2 * (count - 1) * -(-rows // count) / rows if is_spread(rows, count) else float(count - 1)
