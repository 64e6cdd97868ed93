"""Slices of dynamic slices, which XLA joins: it adds up the starts, and forgets that those outside are clamped."""

from __future__ import annotations

from shardy_dialects.stablehlo.local.writer import Writer
from shardy_dialects.stablehlo.splats import splat_of
from shardy_py.ir.graph.program import Op, Value

_SLICE = "stablehlo.dynamic_slice"
_INDEX = "i64"


def clamped_slice(writer: Writer, value: Value) -> Value:
    """Return a value of which a part is taken; of a dynamic slice one that starts inside of its operand."""
    made = value.defining_op
    if made is None or made.name != _SLICE or _is_inside(made):
        return value
    operand, *starts = made.operands
    clamped = []
    for dim, start in enumerate(starts):
        low, high = (writer.scalar(str(number), _INDEX) for number in (0, operand.shape[dim] - value.shape[dim]))
        index = writer.convert(start, _INDEX)
        clamped.append(writer.emit.op("stablehlo.clamp", [low, index, high], [index.type]).result)
    return writer.emit.op(_SLICE, [operand, *clamped], [value.type], {"slice_sizes": value.shape}).result


def _is_inside(made: Op) -> bool:
    """Return whether it is known that a slice needs no clamping."""
    operand, *starts = made.operands
    sizes = zip(operand.shape, made.results[0].shape, starts, strict=True)
    return all(_is_known(start, whole - size) for whole, size, start in sizes)


def _is_known(start: Value, largest: int) -> bool:
    number, made = splat_of(start), start.defining_op
    if number is None:
        return made is not None and made.name == "stablehlo.clamp"
    return 0 <= number <= largest
