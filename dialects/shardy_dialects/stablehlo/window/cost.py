"""Reductions over windows.

As in XLA's hlo_cost_analysis.cc::HandleReduceWindow, and what XLA:CPU makes of some of them before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.costs import LibraryCost, element_bytes, element_types, has_many_elements
from shardy_dialects.stablehlo.elementwise.cost import region_work
from shardy_dialects.stablehlo.reduce.cost import combines
from shardy_dialects.stablehlo.window import padding_of
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Window
from shardy_py.sharding.rule_builder import tensor_shape

_BASE_LENGTH = 16
"""The length of the parts of a scan in reduce_window_rewriter.cc."""


_INDEX_BYTES = 4


class ReduceWindowCost(LibraryCost):
    """A reduction over windows; one over everything before an element becomes a tree."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the region times the elements of a window but one, for each result."""
        flops, transcendentals = region_work(op)
        out = shapes.results[0]
        scanned = _scanned_dim(op)
        if scanned is not None and out[scanned] < tensor_shape(op.results[0])[scanned]:
            # The partitioner has made it a window over the parts of all devices, which the rewriter does not know.
            scanned = None
        if scanned is None:
            window = prod(integers_of(op, "window_dimensions"))
            runs = float((window - 1) * prod(out))
            return OpWork(flops * runs, transcendentals * runs)
        size = out[scanned]
        rows = prod(out) / max(1, size)
        runs, elements = _scan(size)
        runs, touched = runs * rows, (elements + _padding(size) - size) * rows
        # The scans of the parts live until what stands before each part is added.
        held = (-(-size // _BASE_LENGTH) * (_BASE_LENGTH + 1)) * rows * sum(map(element_bytes, op.results))
        reads = dict.fromkeys(range(len(op.results)), touched)
        return OpWork(flops * runs, transcendentals * runs, reads, temporary_bytes=held)

    def _is_in_library(self, op: Op, shapes: OpShapes) -> bool:
        """Return whether windows lie next to each other, and are summed, or give the largest or smallest element."""
        sizes: Sequence[int] = integers_of(op, "window_dimensions")
        ones = (1,) * len(sizes)
        strides = integers_of(op, "window_strides") or ones
        dilations = (*integers_of(op, "window_dilations"), *integers_of(op, "base_dilations"))
        if max(sizes, default=1) == 1 or strides != sizes or any(dilation != 1 for dilation in dilations):
            return False
        is_single = len(op.results) == 1 and element_types(op) in ({"f32"}, {"f64"})
        return is_single and has_many_elements(shapes) and combines(op)

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return the window of each dimension that has one."""
        return tuple(_windows(op))


class SelectAndScatterCost(CostOpInterface):
    """The gradient of a pooling: XLA finds the places by a reduction over windows of values and indices, and scatters.

    As in XLA's select_and_scatter_expander.cc: besides the selection, three operations on booleans and indices per run,
    and a selection per dimension and for the value.
    """

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the reduction and of the scatter."""
        source = prod(_source_shape(op, shapes))
        window = prod(integers_of(op, "window_dimensions"))
        select, _ = region_work(op)
        scatter = len([inner for inner in op.regions[1].blocks[0].ops if inner.operands and inner.results])
        rank, elements = len(shapes.operands[0]), prod(shapes.operands[0])
        body = select + 5 + 1 + rank
        # An index per dimension is made, read beside the values, joined with the others, and read by the scatter.
        moved = float((2 * rank + 1) * elements + (4 * rank + 5) * source)
        # The indices of the operand, one per dimension, live until those of the windows are there, beside their values.
        held = float(_INDEX_BYTES * (rank * elements + (rank + 1) * source))
        flops = float(source * (window - 1) * body + source * scatter)
        return OpWork(flops, reads={0: moved}, temporary_bytes=held)

    def get_windows(self, op: Op) -> Sequence[Window]:
        """Return the window of each dimension that has one; source and operand are the other way around."""
        return ()


def _source_shape(op: Op, shapes: OpShapes) -> Iterator[int]:
    """Yield the sizes of what a device scatters: the windows that its part of the operand meets.

    Where windows lie next to each other, XLA scatters all of them on each device.
    """
    sizes = integers_of(op, "window_dimensions")
    strides = integers_of(op, "window_strides") or (1,) * len(sizes)
    padding = padding_of(op) or (0,) * (2 * len(sizes))
    whole_source = tensor_shape(op.operands[1])
    for dim, (full_size, part, source) in enumerate(
        zip(tensor_shape(op.operands[0]), shapes.operands[0], shapes.operands[1], strict=True)
    ):
        stride, low = strides[dim], padding[2 * dim]
        if part == full_size or not part or stride == 1 or source < whole_source[dim]:
            yield source
            continue
        starts = range(low, full_size + low, part)
        yield max(
            min(source - 1, (start + part - 1) // stride) - max(0, -(-(start - sizes[dim] + 1) // stride)) + 1
            for start in starts
        )


def _scanned_dim(op: Op) -> int | None:
    """Return the dimension along which each window holds everything up to an element, or from it on."""
    shape = tensor_shape(op.operands[0])
    window: Sequence[int] = integers_of(op, "window_dimensions")
    padding = padding_of(op)
    wide = [dim for dim, size in enumerate(window) if size > 1]
    if len(wide) != 1 or not padding or shape != tensor_shape(op.results[0]):
        return None
    (dim,) = wide
    is_scan = window[dim] == shape[dim] and shape[dim] - 1 in padding[2 * dim : 2 * dim + 2]
    return dim if is_scan and shape[dim] > _BASE_LENGTH else None


def _scan(size: int) -> tuple[float, float]:
    """Return the runs of the region for a scan over a number of elements, and the elements it reads and writes.

    Parts are scanned, then the last elements of all parts, as a scan where these are many; another kernel adds what
    stands before each part.
    """
    parts = -(-size // _BASE_LENGTH)
    runs, elements = (parts * parts - 1.0, 4.0 * parts + 1) if parts <= _BASE_LENGTH else _scan(parts)
    padded_size = parts * _BASE_LENGTH
    return padded_size * _BASE_LENGTH + runs, 4 * padded_size + parts + elements


def _padding(size: int) -> float:
    """Return the elements that are read and written to fill the last part of a scan."""
    return 2.0 * size if size % _BASE_LENGTH else 0.0


def _windows(op: Op) -> Iterator[Window]:
    sizes: Sequence[int] = integers_of(op, "window_dimensions")
    ones = (1,) * len(sizes)
    strides = integers_of(op, "window_strides") or ones
    dilations = integers_of(op, "window_dilations") or ones
    base = integers_of(op, "base_dilations") or ones
    padding = padding_of(op) or (0,) * (2 * len(sizes))
    for operand in range(len(op.results)):
        for dim, size in enumerate(sizes):
            span = (size - 1) * dilations[dim] + 1
            if (span, strides[dim], padding[2 * dim], base[dim]) != (1, 1, 0, 1):
                yield Window(operand, dim, dim, span, strides[dim], padding[2 * dim], base[dim])
