"""Parts of tensors along dynamic sizes, of which no more is known than that all have one size."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardy_dialects.stablehlo.local.literals import dense
from shardy_dialects.stablehlo.local.writer import Writer, element_type_of
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Value
from shardy_py.ir.graph.types import TensorType, tensor
from shardy_py.ir.interfaces.local import no_local_form
from shardy_py.sharding.unknown_size import is_derived
from shardy_py.values import frozen

_INDEX = "i64"
_TABLE = re.compile(r"\d+(, \d+)*")


@frozen
class DynamicParts:
    """A slice with starts and sizes of which some are parts of a dynamic size.

    Args:
        writer: Where ops go.
        value: The tensor.
        starts: The starts, scalars; along a dynamic size entries of tables for the device.
        sizes: The sizes, with the stand-ins of those that are not known.
    """

    writer: Writer
    value: Value
    starts: Sequence[Value]
    sizes: Sequence[int]

    def slice(self) -> Value:
        """Return the slice.

        Raises:
            CannotLocalize: a part begins elsewhere than at a multiple of its size.
        """
        rows = [self._bounds(dim, size) for dim, size in enumerate(self.sizes)]
        starts, limits = (self._line([row[end] for row in rows]) for end in (0, 1))
        one = self.writer.scalar("1", _INDEX)
        strides = self._line([one] * len(rows))
        type_ = TensorType(tuple(self.sizes), element_type_of(self.value))
        operands = [self.value, starts, limits, strides]
        return self.writer.emit.op("stablehlo.real_dynamic_slice", operands, [type_]).result

    def _bounds(self, dim: int, size: int) -> tuple[Value, Value]:
        """Return where the part begins and ends."""
        writer, full = self.writer, self.value.shape[dim]
        if is_derived(size):
            full_size = self._size(dim)
            if size == full:
                return writer.scalar("0", _INDEX), full_size
            parts = writer.scalar(str(full // size), _INDEX)
            self._assert_divides(dim, full_size, parts)
            part = writer.binary("divide", full_size, parts)
            start = writer.binary("multiply", self._position(self.starts[dim], size), part)
            return start, writer.binary("add", start, part)
        low, high = (writer.scalar(str(number), _INDEX) for number in (0, full - size))
        start = writer.convert(self.starts[dim], _INDEX)
        start = writer.emit.op("stablehlo.clamp", [low, start, high], [start.type]).result
        return start, writer.binary("add", start, writer.scalar(str(size), _INDEX))

    def _assert_divides(self, dim: int, size: Value, parts: Value) -> None:
        """Assert that a size has equal parts, as `jax.export` asserts what it takes for granted about sizes."""
        writer = self.writer
        rest = writer.binary("remainder", size, parts)
        is_even = writer.compare("EQ", rest, writer.scalar("0", _INDEX))
        attributes = {
            "api_version": RawAttribute("2 : i32"),
            "call_target_name": "shape_assertion",
            "error_message": f"dimension {dim} has {{0}} elements, which are not {{1}} equal parts",
            "has_side_effect": True,
        }
        writer.emit.op("stablehlo.custom_call", [is_even, size, parts], (), attributes)

    def _size(self, dim: int) -> Value:
        size = self.writer.emit.op(
            "stablehlo.get_dimension_size", [self.value], [tensor(dtype="i32")], {"dimension": dim}
        )
        return self.writer.convert(size.result, _INDEX)

    def _position(self, start: Value, size: int) -> Value:
        """Let a new table of starts, multiples of a size that is not known, have the numbers of the parts instead."""
        value: Value | None = start
        while value is not None and value.defining_op is not None and value.defining_op.name != "stablehlo.constant":
            value = value.defining_op.operands[0] if value.defining_op.operands else None
        table = None if value is None else value.defining_op
        # As `integers` writes a table.
        text = "" if table is None else str(table.attributes["value"]).removeprefix("dense<[").partition("]>")[0]
        numbers = [int(number) for number in text.split(", ")] if _TABLE.fullmatch(text) else None
        if table is None or start.uses or numbers is None or any(number % size for number in numbers):
            raise no_local_form("a part of a dynamic size begins elsewhere than at a multiple of its size")
        table.attributes["value"] = dense([number // size for number in numbers])
        return start

    def _line(self, scalars: Sequence[Value]) -> Value:
        """Return scalars as a tensor along one dimension."""
        emit, row, line = self.writer.emit, tensor(1, dtype=_INDEX), tensor(len(scalars), dtype=_INDEX)
        rows = [emit.op("stablehlo.reshape", [scalar], [row]).result for scalar in scalars]
        return emit.op("stablehlo.concatenate", rows, [line], {"dimension": 0}).result
