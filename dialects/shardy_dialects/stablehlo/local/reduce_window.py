"""The local form of a reduction over windows: each device fetches the elements that its windows need."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.computations import region_combiner
from shardy_dialects.stablehlo.definitions import attribute
from shardy_dialects.stablehlo.local.cumulative import cumulated, is_cumulative
from shardy_dialects.stablehlo.local.cuts import cut_dims, cut_of
from shardy_dialects.stablehlo.local.dilation import fetch_footprint
from shardy_dialects.stablehlo.local.reduction import NEUTRAL
from shardy_dialects.stablehlo.local.window_attributes import read_windows, window_changes
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form

_BASE, _STEPS = "base_dilations", "window_dilations"


def localize_reduce_window(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reduction of the windows of the device; places without elements count as the initial value."""
    windows = read_windows(op, attribute(op, "window_dimensions"), _BASE, _STEPS)
    count = len(op.results)
    operands = list(shard.operands)
    moved = [dim for dim in cut_dims(shard) if not windows[dim].is_trivial]
    if not moved:
        return shard.copy()
    if any(windows[dim].leaves_operand for dim in moved):
        _check_initial_values(op)
    if len(moved) == 1 and is_cumulative(windows[moved[0]], op.operands[0].shape[moved[0]]) and not shard.is_resolved:
        return cumulated(op, shard, windows, moved[0])
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


def _check_initial_values(op: Op) -> None:
    """Check that it does not matter how often initial values count: places outside of the operand hold them, too.

    Raises:
        CannotLocalize: it does, or it is not known.
    """
    count = len(op.results)
    combiner = region_combiner(op)
    neutral = None if combiner is None else NEUTRAL.get(combiner)
    initial = [splat_of(value) for value in op.operands[count:]]
    if combiner is None or (neutral is not None and any(value != neutral for value in initial)):
        raise no_local_form("the initial value of its windows is not neutral")


FORMS = {"stablehlo.reduce_window": localize_reduce_window}
