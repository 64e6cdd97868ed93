"""Scalar body of select-and-scatter: an element collects the sources of the windows that select it."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.bodies import as_condition
from shardy_dialects.stablehlo.definitions import shape_of
from shardy_dialects.stablehlo.window import padding_of
from shardy_py.indexing import Bound, IndexingMap, Interval, dim, op_maps, symbol
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar

_SELECT, _SCATTER = 0, 1


def select_and_scatter_body(b: ElementBuilder, op: Op) -> Scalar:
    """Combine the initial value with the source of each window around the element that selects it, in their order."""
    around, within = window_maps(op)
    shape = shape_of(op.results[0])
    place = linear_map(shape)
    (position,) = b.apply(place, b.indices)
    zero = b.constant(0, "index")

    def window(at: Sequence[Scalar], carried: Sequence[Scalar]) -> Sequence[Scalar]:
        def candidate(index: Sequence[Scalar], best: Sequence[Scalar]) -> Sequence[Scalar]:
            value, selected, has_any = best
            element = b.operand(0, index)
            (is_kept,) = b.call(op, [value, element], _SELECT)
            keeps = b.op("arith.andi", as_condition(b, has_any), as_condition(b, is_kept))
            (number,) = b.apply(place, index)
            return [
                b.op("arith.select", keeps, value, element, dtype=value.dtype),
                b.op("arith.select", keeps, selected, number, dtype="index"),
                b.constant(1, "i8"),
            ]

        (total,) = carried
        nothing = [b.operand(0, [zero] * len(shape)), zero, b.constant(0, "i8")]
        _, selected, has_any = b.reduce(within, nothing, candidate, at)
        is_own = b.op("arith.cmpi", selected, position, dtype="i1", predicate="eq")
        takes = b.op("arith.andi", is_own, as_condition(b, has_any))
        return [b.choose(takes, lambda: b.call(op, [total, b.operand(1, at)], _SCATTER)[0], lambda: total)]

    return b.reduce(around, [b.operand(2, [])], window)[0]


def window_maps(op: Op) -> tuple[IndexingMap, IndexingMap]:
    """Return the maps from an element to the windows around it, and from a window to its elements, in their order."""
    shape, windows = shape_of(op.results[0]), shape_of(op.operands[1])
    ones = (1,) * len(shape)
    sizes = tuple(integers_of(op, "window_dimensions") or ones)
    strides = tuple(integers_of(op, "window_strides") or ones)
    low = tuple(padding_of(op)[::2]) or (0,) * len(shape)
    ranges = tuple(Bound(Interval(0, size - 1)) for size in sizes)
    # The first window around an element has it as its last one.
    starts = [dim(number) + (low[number] - size + 1) + symbol(number) for number, size in enumerate(sizes)]
    around = IndexingMap.of_shape(
        shape, [start // stride for start, stride in zip(starts, strides, strict=True)], ranges=ranges
    )
    inside = [(start % stride, Interval(0, 0)) for start, stride in zip(starts, strides, strict=True) if stride > 1]
    inside += [
        (start, Interval(0, (count - 1) * stride))
        for start, stride, count in zip(starts, strides, windows, strict=True)
    ]
    elements = [dim(number) * strides[number] + symbol(number) - low[number] for number in range(len(shape))]
    within = IndexingMap.of_shape(windows, elements, ranges=ranges)
    bounds = [(element, Interval(0, size - 1)) for element, size in zip(elements, shape, strict=True)]
    return around.with_constraints(inside), within.with_constraints(bounds)


def linear_map(shape: Sequence[int]) -> IndexingMap:
    """Return the map from the index of an element to its number in row-major order."""
    return IndexingMap.of_shape(shape, (op_maps.linearized([dim(number) for number in range(len(shape))], shape),))
