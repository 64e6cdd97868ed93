"""Scalar bodies of slices, updates, padding and concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import integer_of, integers_of
from shardy_dialects.stablehlo.bodies import is_unsigned
from shardy_dialects.stablehlo.definitions import shape_of
from shardy_py.indexing import op_maps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import ElementBuilder, Scalar


def pad(b: ElementBuilder, op: Op) -> Scalar:
    """Read the operand where it lies in the result, else the padding value."""
    low, high = integers_of(op, "edge_padding_low"), integers_of(op, "edge_padding_high")
    map_ = op_maps.pad(shape_of(op.results[0]), low, high, integers_of(op, "interior_padding"))
    return b.choose(b.inside(map_, b.indices), lambda: b.operand(0), lambda: b.operand(1))


def concatenate(b: ElementBuilder, op: Op) -> Scalar:
    """Find the operand by bisection, and the index in it."""
    dimension = integer_of(op, "dimension")
    ends: list[int] = []
    for value in op.operands:
        ends.append((ends[-1] if ends else 0) + shape_of(value)[dimension])
    place = b.indices[dimension]

    def among(first: int, last: int) -> Scalar:
        if last - first == 1:
            offset = b.constant(ends[first - 1] if first else 0, "index")
            inner = [*b.indices]
            inner[dimension] = b.op("arith.subi", place, offset)
            return b.operand(first, inner)
        middle = (first + last) // 2
        border = b.constant(ends[middle - 1], "index")
        before = b.op("arith.cmpi", place, border, dtype="i1", predicate="ult")
        return b.choose(before, lambda: among(first, middle), lambda: among(middle, last))

    return among(0, len(op.operands))


def dynamic_slice(b: ElementBuilder, op: Op) -> Scalar:
    """Read from starts that are known at run time."""
    offsets = starts(b, op, 1, shape_of(op.operands[0]), shape_of(op.results[0]))
    return b.operand(0, [b.op("arith.addi", index, offset) for index, offset in zip(b.indices, offsets, strict=True)])


def dynamic_update_slice(b: ElementBuilder, op: Op) -> Scalar:
    """Read the update inside the window, the operand elsewhere."""
    sizes = shape_of(op.operands[1])
    offsets = starts(b, op, 2, shape_of(op.operands[0]), sizes)
    inside = b.constant(1, "i1")
    inner = []
    for index, offset, size in zip(b.indices, offsets, sizes, strict=True):
        end = b.op("arith.addi", offset, b.constant(size, "index"))
        for condition in (
            b.op("arith.cmpi", index, offset, dtype="i1", predicate="sge"),
            b.op("arith.cmpi", index, end, dtype="i1", predicate="slt"),
        ):
            inside = b.op("arith.andi", inside, condition)
        inner.append(b.op("arith.subi", index, offset))
    return b.choose(inside, lambda: b.operand(1, inner), lambda: b.operand(0))


def starts(b: ElementBuilder, op: Op, first: int, shape: Sequence[int], slice_shape: Sequence[int]) -> list[Scalar]:
    """Return the clamped start of every dimension; where the slice is as large as the operand, that is zero."""
    offsets = []
    for number, (size, slice_size) in enumerate(zip(shape, slice_shape, strict=True)):
        index = b.operand(first + number)
        fits = size == slice_size
        offsets.append(
            b.constant(0, "index") if fits else start(b, op.operands[first + number], index, size - slice_size)
        )
    return offsets


def start(b: ElementBuilder, value: Value, index: Scalar, last: int) -> Scalar:
    """Return a start known at run time, clamped to the places where a slice fits."""
    if is_unsigned(value):
        wide = b.op("arith.index_castui", index, dtype="index")
        return b.op("arith.minui", wide, b.constant(last, "index"))
    wide = b.op("arith.index_cast", index, dtype="index")
    return b.op("arith.maxsi", b.op("arith.minsi", wide, b.constant(last, "index")), b.constant(0, "index"))
