"""The local form of a reduction over windows: each device fetches the elements that its windows need."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.local.cuts import cut_dims, cut_of
from shardy_dialects.stablehlo.local.dilation import fetch_footprint
from shardy_dialects.stablehlo.local.window_attributes import read_windows, window_changes
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.local import Shard

_BASE, _STEPS = "base_dilations", "window_dilations"


def localize_reduce_window(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reduction of the windows of the device; places without elements count as the initial value."""
    windows = read_windows(op, attribute(op, "window_dimensions"), _BASE, _STEPS)
    count = len(op.results)
    operands = list(shard.operands)
    moved = [dim for dim in cut_dims(shard) if not windows[dim].is_trivial]
    if not moved:
        return shard.copy()
    for dim in moved:
        cut = cut_of(shard, dim)
        footprint = windows[dim].footprint(cut.parts, shard.result_shape()[dim])
        for number in range(count):
            fetched = fetch_footprint(cut, operands[number], dim, cut.runs(number), footprint, operands[count + number])
            operands[number] = fetched.value
        windows[dim] = windows[dim].over(fetched)
    types = [shard.result_type(number) for number in range(count)]
    changes = window_changes(windows, _BASE)
    return list(shard.emit.op_like(op, operands, types, changes, shard.regions()).results)


FORMS = {"stablehlo.reduce_window": localize_reduce_window}
