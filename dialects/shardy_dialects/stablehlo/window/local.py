"""Local forms of ops over windows: each device fetches the elements that its windows need."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import case_of, integers_of
from shardy_dialects.stablehlo.elementwise.ops import COMPARE, CONVERT
from shardy_dialects.stablehlo.local.cumulative import cumulated, is_cumulative
from shardy_dialects.stablehlo.local.footprints import (
    DilatedReads,
    DimensionWindows,
    fetch_footprint,
    read_windows,
    window_changes,
)
from shardy_dialects.stablehlo.local.literals import neutral_literal
from shardy_dialects.stablehlo.local.windows import Cut, common_cut, cut_dims, cut_of
from shardy_dialects.stablehlo.local.writer import Writer, element_type_of, resized
from shardy_dialects.stablehlo.reduce.local import NEUTRAL
from shardy_dialects.stablehlo.regions import region_combiner
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

_BASE, _STEPS = "base_dilations", "window_dilations"


def localize_reduce_window(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the reduction of the windows of the device; places without elements count as the initial value."""
    windows = read_windows(op, integers_of(op, "window_dimensions"), _BASE, _STEPS)
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


_LARGEST, _SMALLEST = (Combiner.MAX, Combiner.MIN), (Combiner.MIN, Combiner.MAX)


_SELECTIONS = {"GE": _LARGEST, "GT": _LARGEST, "LE": _SMALLEST, "LT": _SMALLEST}
"""The selected element by the direction of a comparison: of the selected with another one, and the other way round."""


def localize_select_and_scatter(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the part of the device of what the windows that touch it scatter.

    Windows outside of the source scatter the initial value, which must be neutral. Elements outside of the operand
    are such that no window selects them.
    """
    windows = selecting_windows(op)
    moved = [dim for dim in cut_dims(shard) if not windows[dim].is_trivial and not _keeps_windows(shard, dim, windows)]
    if not moved:
        return shard.copy()
    operand, source, initial = shard.operands
    if region_combiner(op, 1) is not Combiner.ADD or splat_of(op.operands[2]) != 0:
        raise no_local_form("the op scatters by something else than sums from zero on")
    writer = Writer(shard.emit, shard.ops)
    element = element_type_of(operand)
    unselected = neutral_literal(_selection(op), element)
    if unselected is None:
        raise no_local_form(f"no {element} is such that no window selects it")
    rest = writer.scalar(unselected, element)
    places = []
    for dim in moved:
        cut = common_cut(shard, [(item, dim) for item in shard.operand_shardings[:2]], (shard.result_shardings[0], dim))
        touching = Touching.of(cut.parts, windows[dim], shard.result_shape()[dim])
        source = fetch_footprint(cut, source, dim, cut.runs(1), touching.sources, initial).value
        operand = fetch_footprint(cut, operand, dim, cut.runs(0), touching.elements, rest).value
        windows[dim] = DimensionWindows(windows[dim].size, windows[dim].stride)
        places.append((cut, touching))
    shape = shard.result_shape()
    type_ = resized(operand, {dim: size for dim, size in enumerate(shape) if dim not in moved})
    changes = {"padding": window_changes(windows, "")["padding"]}
    result = shard.emit.op_like(op, [operand, source, initial], [type_], changes, shard.regions()).result
    for cut, touching in places:
        result = touching.part(result, cut, writer, initial)
    return [result]


def selecting_windows(op: Op) -> list[DimensionWindows]:
    """Return the windows of a select-and-scatter along each dimension."""
    return read_windows(op, integers_of(op, "window_dimensions"), "base_dilations", "window_dilations")


def _keeps_windows(shard: Shard, dim: int, windows: Sequence[DimensionWindows]) -> bool:
    """Return whether the windows of each part of a dimension, and what they scatter, are on its device."""
    shardings = (*shard.operand_shardings[:2], *shard.result_shardings)
    axes = {() if item is None else item.of_dimension(dim).axes for item in shardings}
    operand, source = (value.shape[dim] for value in shard.op.operands[:2])
    return len(axes) == 1 and stay_apart(windows[dim], operand, source, shard.parts(shard.operand_shardings[0], dim))


def stay_apart(window: DimensionWindows, operand: int, source: int, parts: int) -> bool:
    """Return whether windows along a dimension do not overlap, and each lies within one part.

    Args:
        window: The windows.
        operand: The number of elements that they select from.
        source: The number of windows.
        parts: The number of parts of both.
    """
    fits = window.size <= window.stride and (window.low, window.high) == (0, 0)
    return fits and operand == source * window.stride and source % parts == 0


@frozen
class Touching:
    """The windows of a dimension that touch the elements of each part.

    Args:
        sources: The numbers of the windows.
        elements: The elements that they select from.
        size: The number of elements of a part.
    """

    sources: DilatedReads
    elements: DilatedReads
    size: int

    @classmethod
    def of(cls, parts: int, window: DimensionWindows, part: int) -> Touching:
        """Return the windows that touch each part.

        Args:
            parts: The number of parts.
            window: The windows of the dimension.
            part: The number of elements of a part.
        """
        firsts, counts = [], []
        for start in (position * part for position in range(parts)):
            firsts.append(-(-(start + window.low - window.size + 1) // window.stride))
            counts.append((start + part - 1 + window.low) // window.stride + 1 - firsts[-1])
        count = max(1, *counts)
        starts = [first * window.stride - window.low for first in firsts]
        size = (count - 1) * window.stride + window.size
        return cls(DilatedReads(firsts, count), DilatedReads(starts, size), part)

    def part(self, value: Value, cut: Cut, writer: Writer, initial: Value) -> Value:
        """Return the elements of the part of the device; those that no window touches are the initial value."""
        places = [position * self.size - start for position, start in enumerate(self.elements.starts)]
        low = max(0, *(-place for place in places))
        high = max(0, *(place + self.size - self.elements.size for place in places))
        wide = writer.padded(value, cut.dim, low, high, fill=initial)
        return writer.part(wide, cut.dim, cut.by_device([place + low for place in places]), self.size)


def _selection(op: Op) -> Combiner:
    """Return whether an op selects the largest or the smallest element of a window.

    Raises:
        CannotLocalize: it selects in another way.
    """
    block = op.regions[0].blocks[0]
    end = block.terminator
    producer = end.operands[0].defining_op if end is not None and end.operands else None
    while producer is not None and producer.name == CONVERT and producer.operands[0].type == producer.result.type:
        producer = producer.operands[0].defining_op
    if producer is not None and producer.name == COMPARE and all(item.owner is block for item in producer.operands):
        selection = _SELECTIONS.get(case_of(producer, "comparison_direction"))
        order = tuple(item.index for item in producer.operands)
        if selection is not None and order in ((0, 1), (1, 0)):
            return selection[order[0]]
    raise no_local_form("it is not known which element of a window the op selects")
